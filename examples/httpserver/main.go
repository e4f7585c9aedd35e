// Command httpserver tunes the garbage collector and a pool of an HTTP server with package fantasia,
// and prints what that gains over Go's usual settings.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/fantasia-hpo/fantasia"
)

func main() {
	trials := flag.Int("trials", 30, "settings to try")
	requests := flag.Int("requests", 2000, "requests for each of them")
	flag.Parse()
	if err := run(*trials, *requests); err != nil {
		log.New(os.Stderr, "", 0).Fatal(err)
	}
}

// run tunes the server, and compares what it has found with the usual settings.
func run(trials, requests int) error {
	ctx := context.Background()
	space := fantasia.NewSpace()
	gogc := space.Int("gogc", 25, 1600, fantasia.Log)
	pool := space.Int("pool", 1, 64, fantasia.Log)

	study, err := fantasia.Minimize(space, fantasia.Options{
		Trials:  trials,
		Initial: [][]fantasia.Assignment{{gogc.Is(usual.gogc), pool.Is(usual.pool)}},
	})
	if err != nil {
		return err
	}
	defer func() { _ = study.Close() }() // it has no file
	err = study.Run(ctx, func(ctx context.Context, t *fantasia.Trial) (float64, error) {
		took, err := load(ctx, settings{gogc.Of(t), pool.Of(t)}, requests)
		return took.Seconds(), err
	})
	if err != nil {
		return err
	}
	found, err := study.Recommended(ctx)
	if err != nil {
		return err
	}
	return compare(ctx, settings{gogc.Of(found.Trial), pool.Of(found.Trial)}, requests)
}

// compare measures settings and the usual ones in turn, since other programs use the machine, too.
func compare(ctx context.Context, found settings, requests int) error {
	var with, without time.Duration
	for range 5 {
		for s, sum := range map[settings]*time.Duration{found: &with, usual: &without} {
			took, err := load(ctx, s, requests)
			if err != nil {
				return err
			}
			*sum += took
		}
	}
	fmt.Printf("GOGC=%d with a pool of %d: %.2f times the requests per second of GOGC=%d with a pool of %d\n",
		found.gogc, found.pool, without.Seconds()/with.Seconds(), usual.gogc, usual.pool)
	return nil
}
