package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/research/lines"
)

// resamples of the bootstrap that makes an interval.
const resamples = 4000

// report writes a table of the results: each tuner's mean regret after each of the worths, and in the second
// half how much less it is than that of the same optimiser without stopping, over the runs of the same task
// and seed, with an interval that holds 95% of the bootstrap's means.
func report(w io.Writer, path string) error {
	all, err := lines.Read[result](path)
	if err != nil {
		return err
	}
	runs := map[string]map[string][]float64{}
	for _, r := range all {
		if runs[r.Tuner] == nil {
			runs[r.Tuner] = map[string][]float64{}
		}
		runs[r.Tuner][fmt.Sprint(r.Task, " ", r.Seed)] = r.Regret
	}
	order := slices.SortedFunc(maps.Keys(runs), func(a, b string) int {
		x, _, _ := strings.Cut(a, "+")
		y, _, _ := strings.Cut(b, "+")
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(mean(runs[a], 2), mean(runs[b], 2)))
	})
	fmt.Fprint(w, "| tuner | runs | 5 | 10 | 20 | 40 | less than without stopping, 5 | 10 | 20 | 40 |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, tuner := range order {
		fmt.Fprintf(w, "| `%s` | %d |", tuner, len(runs[tuner]))
		for i := range 4 {
			fmt.Fprintf(w, " %.2f |", mean(runs[tuner], i))
		}
		algorithm, rule, stops := strings.Cut(tuner, "+")
		for i := range 4 {
			if !stops || rule == "" || runs[algorithm] == nil {
				fmt.Fprint(w, "  |")
				continue
			}
			fmt.Fprintf(w, " %s |", gain(runs[algorithm], runs[tuner], i))
		}
		fmt.Fprintln(w)
	}
	return nil
}

func mean(runs map[string][]float64, i int) (sum float64) {
	for _, key := range slices.Sorted(maps.Keys(runs)) {
		sum += runs[key][i]
	}
	return sum / float64(len(runs))
}

// gain compares the runs that a and b both have. It returns how much less the regret of b is, as a mean with its
// interval.
func gain(a, b map[string][]float64, i int) string {
	var less []float64
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if a[key] != nil {
			less = append(less, a[key][i]-b[key][i])
		}
	}
	if len(less) < 5 {
		return "too few runs"
	}
	rng := rand.New(rand.NewPCG(1, 0))
	means := make([]float64, resamples)
	for k := range means {
		for range less {
			means[k] += less[rng.IntN(len(less))] / float64(len(less))
		}
	}
	slices.Sort(means)
	low, high := stat.Quantile(0.025, stat.Empirical, means, nil), stat.Quantile(0.975, stat.Empirical, means, nil)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", stat.Mean(less, nil), low, high)
}
