// Command papers prints the measure by which a paper compares optimisers, as a table of
// the runs that `fantasia bench` has kept: `make paper-lgp`.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/internal/app/bench"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/research/lines"
)

// firstPoints is the number of random points from which the gap is measured.
const firstPoints = 2

func main() { lifecycle.Main("papers", run) }

func run(context.Context) error {
	file := flag.String("runs", "", "runs.jsonl of fantasia bench")
	by := flag.String("by", "model", "setting that distinguishes the columns")
	name := flag.String("measure", "gap", "gap or regret")
	after := flag.Int("after", 0, "number of evaluations that count; 0 is the budget of each run")
	against := flag.String("against", "", "column whose paired differences to the others are printed too")
	flag.Parse()
	measure, ok := measures()[*name]
	if !ok {
		return fmt.Errorf("unknown measure %q; want gap or regret", *name)
	}
	t, err := read(*file, *by, *after, measure)
	if err != nil {
		return err
	}
	t.write(os.Stdout, measure)
	if *against != "" {
		fmt.Printf("\n%s less the others, by seed:\n\n", *against)
		t.writePaired(os.Stdout, *against)
	}
	return nil
}

// measure is the figure of a run by the losses that extremes returns; ok is false if the run
// has none.
type measure struct {
	of    func(first, best float64) (value float64, ok bool)
	lower bool // is better
}

func measures() map[string]measure {
	return map[string]measure{"gap": {of: gap}, "regret": {of: regret, lower: true}}
}

// table holds the measures by objective, by column, and by seed.
type table map[string]row

// row holds the measures of an objective by column, then by seed.
type row map[string]map[uint64]float64

// best returns the column with the best mean.
func (r row) best(lower bool) string {
	best, most := "", math.Inf(-1)
	for _, column := range slices.Sorted(maps.Keys(r)) {
		values := slices.Sorted(maps.Values(r[column]))
		mean := stat.Mean(values, nil)
		if lower {
			mean = -mean
		}
		if mean > most {
			best, most = column, mean
		}
	}
	return best
}

// differences returns a less b for the seeds that both have, in the order of the seeds.
func differences(a, b map[uint64]float64) []float64 {
	var all []float64
	for _, seed := range slices.Sorted(maps.Keys(a)) {
		if v, ok := b[seed]; ok {
			all = append(all, a[seed]-v)
		}
	}
	return all
}

// level reports whether a two-sided signed-rank test leaves open at 5% on which side of 0
// the differences lie.
func level(differences []float64) bool {
	if len(differences) == 0 {
		return true
	}
	opposite := make([]float64, len(differences))
	for i, d := range differences {
		opposite[i] = -d
	}
	return 2*min(pruner.SignedRank(differences), pruner.SignedRank(opposite)) > 0.05
}

// spread prints a mean with its standard error.
func spread(values []float64) string {
	mean, sd := stat.MeanStdDev(values, nil)
	return fmt.Sprintf("%.3f ± %.3f", mean, stat.StdErr(sd, float64(len(values))))
}

// writePaired prints the mean differences of a column to the others with their standard
// errors.
func (t table) writePaired(out io.Writer, against string) {
	heads := slices.DeleteFunc(t.columns(), func(c string) bool { return c == against })
	fmt.Fprintf(out, "| function | %s |\n| ---%s |\n", strings.Join(heads, " | "), strings.Repeat(" | ---:", len(heads)))
	for _, objective := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(out, "| `%s` |", objective)
		for _, column := range heads {
			if d := differences(t[objective][against], t[objective][column]); len(d) > 1 {
				fmt.Fprintf(out, " %s |", spread(d))
			} else {
				fmt.Fprint(out, " |")
			}
		}
		fmt.Fprintln(out)
	}
}

func read(file, by string, after int, m measure) (table, error) {
	runs, err := lines.Read[bench.Run](file)
	if err == nil && len(runs) == 0 {
		err = fmt.Errorf("%q has no runs; want a file of fantasia bench", file)
	}
	t := table{}
	for i := range runs {
		t.add(&runs[i], by, after, m)
	}
	return t, err
}

// add puts the measure of a run into its cell.
func (t table) add(r *bench.Run, by string, after int, m measure) {
	if after == 0 {
		after = r.Spec.Trials
	}
	v, ok := m.of(extremes(r, after))
	if !ok {
		return
	}
	column := r.Spec.Optimizer
	if v, ok := r.Spec.Settings[by]; ok {
		column = fmt.Sprint(v)
	}
	if t[r.Spec.Objective] == nil {
		t[r.Spec.Objective] = row{}
	}
	of := t[r.Spec.Objective]
	if of[column] == nil {
		of[column] = map[uint64]float64{}
	}
	of[column][r.Spec.Seed] = v
}

// regret returns the distance of a run's best value to the minimum.
func regret(_, best float64) (value float64, ok bool) { return best, !math.IsInf(best, 1) }

// gap returns which share of the way from the best of the first points to the minimum a
// run made (Malkomes and Garnett 2018): (first − best) / (first − minimum), in values of
// the function. ok is false without completed evaluations, or if it began at the minimum.
func gap(first, best float64) (value float64, ok bool) {
	if math.IsInf(first, 1) || first == 0 {
		return 0, false
	}
	return (first - best) / first, true // losses are above the minimum
}

// extremes returns the least loss of the first points and of all until after, +Inf if none
// completed.
func extremes(r *bench.Run, after int) (first, best float64) {
	first, best = math.Inf(1), math.Inf(1)
	for _, e := range r.Result.Evaluations {
		if e.Outcome != optimizer.OutcomeCompleted || e.Trial > after {
			continue
		}
		if e.Trial <= firstPoints {
			first = min(first, e.Loss)
		}
		best = min(best, e.Loss)
	}
	return first, best
}

// columns returns the columns' names, sorted.
func (t table) columns() []string {
	columns := map[string]bool{}
	for _, row := range t {
		for column := range row {
			columns[column] = true
		}
	}
	return slices.Sorted(maps.Keys(columns))
}

// write prints the means with their standard errors and the number of runs. Those are bold
// that a two-sided Wilcoxon signed-rank test, paired by seed, does not tell from the best one
// at 5%, as in Bodin et al. (2020).
func (t table) write(out io.Writer, m measure) {
	heads := t.columns()
	fmt.Fprintf(out, "| function | %s |\n| ---%s |\n", strings.Join(heads, " | "), strings.Repeat(" | ---:", len(heads)))
	for _, objective := range slices.Sorted(maps.Keys(t)) {
		row := t[objective]
		best := row.best(m.lower)
		fmt.Fprintf(out, "| `%s` |", objective)
		for _, column := range heads {
			values := slices.Collect(maps.Values(row[column]))
			if len(values) < 2 {
				fmt.Fprint(out, " |")
				continue
			}
			slices.Sort(values) // the sum must not depend on the order of a map
			text := spread(values)
			if level(differences(row[best], row[column])) {
				text = "**" + text + "**"
			}
			fmt.Fprintf(out, " %s (%d) |", text, len(values))
		}
		fmt.Fprintln(out)
	}
}
