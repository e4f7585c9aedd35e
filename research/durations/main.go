// Command durations plays studies on tables of trainings with real times, in virtual time, and says how well the model of
// durations predicts the times of their trials and the time left: `make durations`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/research/tabulated"
	"github.com/fantasia-hpo/fantasia/study"
)

func main() { lifecycle.Main("durations", runAll) }

// trials is the length of the studies, and moments are when they are looked at: after about a tenth, half and nine tenths.
const trials = 128

var moments = []int{13, 64, 115}

func runAll(ctx context.Context) error {
	folder := flag.String("tables", "", "the folder of the tables")
	algorithms := flag.String("algorithms", "random,hebo", "algorithms, separated by commas; those ending in +earlier know the other tables "+
		"of the family, +timed also their times")
	python := flag.String("python", "python3", "a Python with Optuna, for optuna-tpe and optuna-gp")
	seeds := flag.Int("seeds", 3, "how many seeds, from 0 on")
	workers := flag.Int("workers", 8, "how many trials run at once")
	out := flag.String("out", "", "a file of runs; those that it has are not played again")
	budget := flag.Bool("budget", false, "play each study until half of the trials of random search would have ended, in place of its trials")
	only := flag.String("only", "", "tables to play, separated by commas; all if empty")
	near := flag.Bool("near", false, "end a run once a trial within the least regret of -regrets has ended")
	regrets := flag.Bool("regrets", false, "print how soon the runs with a budget were near the best, beside hebo, and play nothing")
	aheads := flag.Bool("ahead", false, "print how well the time of trials is expected with and without the times of earlier studies")
	reports := flag.Bool("report", false, "print the table of what the model expected in the runs, and play nothing")
	flag.Parse()
	if *aheads {
		return reportAhead(ctx, os.Stdout, *folder, *seeds)
	}
	if *out == "" {
		return errors.New("-out is missing; want a file for the results")
	}
	runs, err := lines.Read[run](*out)
	if err != nil {
		return err
	}
	if *reports {
		return report(ctx, os.Stdout, *folder, runs)
	}
	if *regrets {
		return reportRegrets(os.Stdout, *folder, runs)
	}
	player := func(ctx context.Context, g *game, algorithm string) (*run, error) {
		if *budget {
			return playBudget(ctx, g, algorithm, *workers, trials)
		}
		return play(ctx, g, algorithm, *workers, trials, 0)
	}
	has := map[string]bool{}
	for i := range runs {
		has[runs[i].key()] = true
	}
	each := func(play func(*tabulated.Table) error) error { return tabulated.Each(*folder, play) }
	if *only != "" {
		each = func(play func(*tabulated.Table) error) error { return named(*folder, strings.Split(*only, ","), play) }
	}
	return each(func(t *tabulated.Table) error {
		var enough func(study.Point) bool
		if *near {
			enough = within(t, slices.Min(levels))
		}
		var others []*tabulated.Table
		if strings.Contains(*algorithms, known) || strings.Contains(*algorithms, timed) {
			if others, err = relatives(*folder, t.Name); err != nil {
				return err
			}
		}
		for seed := range *seeds {
			for algorithm := range strings.SplitSeq(*algorithms, ",") {
				if has[(&run{Table: t.Name, Algorithm: algorithm, Seed: seed}).key()] {
					continue
				}
				r, err := player(ctx, &game{t, seed, earlier(t, others, seed), *python, enough}, algorithm)
				if err == nil {
					err = lines.Append(*out, r)
				}
				if err != nil {
					return fmt.Errorf("%s on %s with seed %d: %w", algorithm, t.Name, seed, err)
				}
			}
		}
		return nil
	})
}

// named reads the tables of these names, one after another.
func named(folder string, names []string, each func(*tabulated.Table) error) error {
	for _, name := range names {
		t, err := tabulated.Read(filepath.Join(folder, name+".jsonl.gz"))
		if err == nil {
			err = each(t)
		}
		if err != nil {
			return err //nolint:wrapcheck // it says which table
		}
	}
	return nil
}
