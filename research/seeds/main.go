// Command seeds runs one study with several optimisers over several seeds and
// prints a table of the best values: `make seeds`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
)

func main() { lifecycle.Main("seeds", run) }

func run(ctx context.Context) (err error) {
	file := flag.String("study", "examples/digits/study.yaml", "the study to run")
	algorithms := flag.String("algorithms", "gp,random", "optimisers, separated by commas")
	seeds := flag.Int("seeds", 10, "how many seeds, from 1 on")
	trials := flag.Int("trials", 40, "trials of each run")
	workers := flag.Int("workers", 8, "workers of each run")
	flag.Parse()
	content, err := os.ReadFile(*file)
	if err != nil {
		return fmt.Errorf("read the study: %w", err)
	}
	scratch, err := os.MkdirTemp("", "fantasia-seeds-")
	if err != nil {
		return fmt.Errorf("make a scratch directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	names := strings.Split(*algorithms, ",")
	best := map[string][]float64{}
	fmt.Printf("| seed | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for seed := 1; seed <= *seeds; seed++ {
		row := fmt.Sprintf("| %d |", seed)
		for _, name := range names {
			s, err := inject.ParseStudy(*file, content)
			if err != nil {
				return err
			}
			s.Spec.Algorithm = study.Algorithm{Name: name, Seed: uint64(seed)}
			s.Spec.Budget.MaxTrials = *trials
			s.Spec.Parallelism = *workers
			if s.Spec.Trial.Workdir, err = filepath.Abs(filepath.Dir(*file)); err != nil {
				return fmt.Errorf("find the study's directory: %w", err)
			}
			value, err := one(ctx, s, filepath.Join(scratch, fmt.Sprintf("%s-%d", name, seed)))
			if err != nil {
				return fmt.Errorf("%s with seed %d: %w", name, seed, err)
			}
			best[name] = append(best[name], value)
			row += fmt.Sprintf(" %.6g |", value)
		}
		fmt.Println(row)
	}
	row := "| **median** |"
	for _, name := range names {
		row += fmt.Sprintf(" **%.6g** |", median(best[name]))
	}
	fmt.Println(row)
	return nil
}

// one runs a study to its end and returns the best value.
func one(ctx context.Context, s *study.Study, state string) (float64, error) {
	r, err := local.Run(ctx, local.Options{Study: s, State: state})
	if err != nil {
		return 0, err
	}
	if r.Status.State != study.Completed {
		return 0, fmt.Errorf("the study ended %s: %s", r.Status.State, r.Status.Reason)
	}
	best := figure.Progress(&s.Spec, r.Trials).Best()
	if len(best) == 0 {
		return math.NaN(), errors.New("nothing completed")
	}
	return best[len(best)-1].Y, nil
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}
