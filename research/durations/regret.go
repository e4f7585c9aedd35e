package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/research/tabulated"
	"github.com/fantasia-hpo/fantasia/study"
)

// levels are the regrets that a run is to reach, as shares of that of the table's median point.
var levels = []float64{0.1, 0.05, 0.01}

// regretsOf returns the regret of each of a table's points.
func regretsOf(t *tabulated.Table) []float64 {
	list := each.Of(t.Rows, func(row tabulated.Row) float64 { return stat.Mean(row.Losses, nil) })
	sorted := slices.Sorted(slices.Values(list))
	best, median := sorted[0], sorted[len(sorted)/2]
	for i := range list {
		list[i] = (list[i] - best) / (median - best)
	}
	return list
}

// within returns a function that says whether a point of a table has at most a regret.
func within(t *tabulated.Table, level float64) func(study.Point) bool {
	regrets := regretsOf(t)
	return func(p study.Point) bool {
		i, ok := t.At[t.Space.Key(p)]
		return ok && regrets[i] <= level
	}
}

// reach returns when a run had ended a trial with at most a regret; the budget if that came no sooner.
func (r *run) reach(t *tabulated.Table, regrets []float64, level float64) float64 {
	at := r.Budget
	for _, trial := range r.Trials {
		if i, ok := t.At[t.Space.Key(trial.Point)]; ok && regrets[i] <= level {
			at = min(at, trial.End)
		}
	}
	return at
}

// ratios are the logarithms of a run's time to each level, over that of hebo, by algorithm and table; a row a run.
type ratios map[string]map[string][][]float64

// ratiosOf compares the runs with those of hebo with the same seed.
func ratiosOf(folder string, runs []run) (ratios, error) {
	all := ratios{}
	return all, tabulated.Each(folder, func(t *tabulated.Table) error {
		regrets, base := regretsOf(t), map[int]*run{}
		for i := range runs {
			if runs[i].Table == t.Name && runs[i].Algorithm == "hebo" {
				base[runs[i].Seed] = &runs[i]
			}
		}
		for i := range runs {
			r := &runs[i]
			if r.Table != t.Name || r.Algorithm == "hebo" || base[r.Seed] == nil {
				continue
			}
			row := make([]float64, len(levels))
			for k, level := range levels {
				row[k] = math.Log(r.reach(t, regrets, level) / base[r.Seed].reach(t, regrets, level))
			}
			if all[r.Algorithm] == nil {
				all[r.Algorithm] = map[string][][]float64{}
			}
			all[r.Algorithm][t.Name] = append(all[r.Algorithm][t.Name], row)
		}
		return nil
	})
}

// reportRegrets prints for each algorithm beside hebo how much of the time of hebo it takes to reach each level: the
// geometric mean over tables of that over seeds, with the interval of 95% of a bootstrap over tables, once for the tables
// of the development and once for the others.
func reportRegrets(w io.Writer, folder string, runs []run) error {
	all, err := ratiosOf(folder, runs)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "| tables | algorithm | within 10% | 5% | 1% | the slowest family, 1% |\n| --- | --- | --- | --- | --- | --- |")
	for _, own := range []bool{true, false} {
		for _, algorithm := range slices.Sorted(maps.Keys(all)) {
			cells, families := make([][]float64, len(levels)), map[string][]float64{}
			for _, name := range slices.Sorted(maps.Keys(all[algorithm])) {
				if developed[name] != own {
					continue
				}
				var mean float64
				for k := range levels {
					mean = meanOf(all[algorithm][name], k)
					cells[k] = append(cells[k], mean)
				}
				families[family(name)] = append(families[family(name)], mean)
			}
			if len(cells[0]) > 0 {
				fmt.Fprintf(w, "| %s (%d) | `%s` |%s\n", map[bool]string{true: "of the development", false: "others"}[own], len(cells[0]),
					algorithm, regretCells(cells, families))
			}
		}
	}
	return nil
}

// regretCells formats the tables' means at each level, and the family with the largest at the last.
func regretCells(cells [][]float64, families map[string][]float64) string {
	var text strings.Builder
	for _, list := range cells {
		low, high := bootstrap(list)
		fmt.Fprintf(&text, " %.2f (%.2f to %.2f) |", math.Exp(stat.Mean(list, nil)), math.Exp(low), math.Exp(high))
	}
	slowest := slices.MaxFunc(slices.Sorted(maps.Keys(families)), func(a, b string) int {
		return cmp.Compare(stat.Mean(families[a], nil), stat.Mean(families[b], nil))
	})
	fmt.Fprintf(&text, " %s %.2f |", slowest, math.Exp(stat.Mean(families[slowest], nil)))
	return text.String()
}

// meanOf returns the mean of a column.
func meanOf(rows [][]float64, column int) float64 {
	var sum float64
	for _, row := range rows {
		sum += row[column]
	}
	return sum / float64(len(rows))
}

// bootstrap returns an interval of 95% of the mean.
func bootstrap(list []float64) (low, high float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	means := make([]float64, 4000)
	for i := range means {
		for range list {
			means[i] += list[rng.IntN(len(list))] / float64(len(list))
		}
	}
	slices.Sort(means)
	return means[len(means)/40], means[len(means)-len(means)/40]
}
