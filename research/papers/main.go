// Command papers prints the measure by which a paper compares optimisers, as a table of
// the runs that `fantasia bench` has kept: `make paper-lgp`, `make paper-uhe`.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/internal/app/bench"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

// firstPoints is the number of random points from which the gap is measured.
const firstPoints = 2

func main() { lifecycle.Main("papers", run) }

func run(context.Context) error {
	file := flag.String("runs", "", "runs.jsonl of fantasia bench")
	by := flag.String("by", "model", "setting that distinguishes the columns")
	name := flag.String("measure", "gap", "gap or regret")
	flag.Parse()
	measure, ok := map[string]measure{"gap": gap, "regret": regret}[*name]
	if !ok {
		return fmt.Errorf("unknown measure %q; want gap or regret", *name)
	}
	content, err := os.ReadFile(*file)
	if err != nil {
		return fmt.Errorf("read the runs: %w", err)
	}
	t, err := read(bytes.NewReader(content), *by, measure)
	if err != nil {
		return fmt.Errorf("read the runs of %s: %w", *file, err)
	}
	t.write(os.Stdout)
	return nil
}

// measure is the figure of a run; ok is false if it has none.
type measure func(r *bench.Run) (value float64, ok bool)

// table holds the measures by objective, then by column.
type table map[string]map[string][]float64

func read(runs io.Reader, by string, of measure) (table, error) {
	t := table{}
	lines := bufio.NewReader(runs)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var r bench.Run
			if err := json.Unmarshal(line, &r); err != nil {
				return nil, err
			}
			column := r.Spec.Optimizer
			if v, ok := r.Spec.Settings[by]; ok {
				column = fmt.Sprint(v)
			}
			if t[r.Spec.Objective] == nil {
				t[r.Spec.Objective] = map[string][]float64{}
			}
			if v, ok := of(&r); ok {
				t[r.Spec.Objective][column] = append(t[r.Spec.Objective][column], v)
			}
		}
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// regret returns the distance of a run's best value to the minimum.
func regret(r *bench.Run) (value float64, ok bool) {
	_, best := extremes(r)
	return best, !math.IsInf(best, 1)
}

// gap returns which share of the way from the best of the first points to the minimum a
// run made (Malkomes and Garnett 2018): (first − best) / (first − minimum), in values of
// the function. ok is false without completed evaluations, or if it began at the minimum.
func gap(r *bench.Run) (value float64, ok bool) {
	first, best := extremes(r)
	if math.IsInf(first, 1) || first == 0 {
		return 0, false
	}
	return (first - best) / first, true // losses are above the minimum
}

// extremes returns the least loss of the first points and of all within the budget, +Inf
// if none completed.
func extremes(r *bench.Run) (first, best float64) {
	first, best = math.Inf(1), math.Inf(1)
	for _, e := range r.Result.Evaluations {
		if e.Outcome != optimizer.OutcomeCompleted || e.Trial > r.Spec.Trials {
			continue
		}
		if e.Trial <= firstPoints {
			first = min(first, e.Loss)
		}
		best = min(best, e.Loss)
	}
	return first, best
}

// write prints the means with their standard errors and the number of runs.
func (t table) write(out io.Writer) {
	columns := map[string]bool{}
	for _, row := range t {
		for column := range row {
			columns[column] = true
		}
	}
	heads := slices.Sorted(maps.Keys(columns))
	fmt.Fprintf(out, "| function | %s |\n| ---%s |\n", strings.Join(heads, " | "), strings.Repeat(" | ---:", len(heads)))
	for _, objective := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(out, "| `%s` |", objective)
		for _, column := range heads {
			values := t[objective][column]
			if len(values) < 2 {
				fmt.Fprint(out, " |")
				continue
			}
			mean, sd := stat.MeanStdDev(values, nil)
			fmt.Fprintf(out, " %.3f ± %.3f (%d) |", mean, stat.StdErr(sd, float64(len(values))), len(values))
		}
		fmt.Fprintln(out)
	}
}
