package main

import (
	"context"
	"fmt"
	"io"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/research/tabulated"
)

// developed are the tables with which the model was developed. The others had no part in it.
var developed = map[string]bool{
	"HPOBench-car": true, "HPOBench-vehicle": true, "HPOBench-kc1": true, "HPOBench-credit_g": true,
	"HPOLib-naval_propulsion": true, "HPOLib-protein_structure": true, "NASBench201-cifar10": true, "NASBench201-imagenet": true,
}

// group is a row of the report.
type group struct {
	developed bool
	algorithm string
	ended     int
}

// report prints a row for each algorithm and moment: the mean over all runs, once of the tables of the development and once
// of the others.
func report(ctx context.Context, w io.Writer, folder string, runs []run) error {
	results := map[group][]*result{}
	err := tabulated.Each(folder, func(t *tabulated.Table) error {
		for i := range runs {
			for _, ended := range moments {
				if runs[i].Table != t.Name {
					continue
				}
				r, err := expected(ctx, t, &runs[i], ended)
				if err != nil {
					return fmt.Errorf("%s on %s with seed %d: %w", runs[i].Algorithm, t.Name, runs[i].Seed, err)
				}
				g := group{developed[t.Name], runs[i].Algorithm, ended}
				results[g] = append(results[g], r)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "| tables | algorithm | ended | in 90% intervals: later, running, random | a trial's time is off by a factor: "+
		"model, mean | the time left is off by a factor: model, mean |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- |")
	for _, own := range []bool{true, false} {
		for _, algorithm := range []string{"random", "hebo"} {
			for _, ended := range moments {
				if list := results[group{own, algorithm, ended}]; len(list) > 0 {
					fmt.Fprintf(w, "| %s | `%s` | %d of %d | %s |\n", map[bool]string{true: "of the development", false: "others"}[own],
						algorithm, ended, trials, cells(list))
				}
			}
		}
	}
	return nil
}

// cells formats what came of expectations.
func cells(list []*result) string {
	mean := func(of func(*result) float64) float64 { return stat.Mean(each.Of(list, of), nil) }
	percent := func(of func(*result) float64) string { return fmt.Sprintf("%.0f%%", 100*mean(of)) }
	factor := func(of func(*result) float64) string { return fmt.Sprintf("%.2f", math.Exp(mean(of))) }
	return fmt.Sprintf("%s, %s, %s | %s, %s | %s, %s",
		percent(func(r *result) float64 { return r.Inside }), percent(func(r *result) float64 { return r.Running }),
		percent(func(r *result) float64 { return r.Random }),
		factor(func(r *result) float64 { return r.Error }), factor(func(r *result) float64 { return r.Mean }),
		factor(func(r *result) float64 { return math.Abs(math.Log(r.Model / r.Left)) }),
		factor(func(r *result) float64 { return math.Abs(math.Log(r.Pace / r.Left)) }))
}
