// Command stopping plays optimisers with early stopping on a table of curves, in
// virtual time, and prints a line of JSON for each run: `make stopping`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/study"
)

func main() { lifecycle.Main("stopping", runAll) }

// tuners returns the tuners by name: OPTIMISER+RULE:TOLD, or OPTIMISER+promote.
func tuners() map[string]tuner {
	// By default asha and median wait for three complete trials. A user who knows the
	// number of steps can turn that off.
	fast := func(more map[string]any) map[string]any {
		settings := map[string]any{"minCompleted": 0, "minProgress": 0, "maxSteps": 81}
		maps.Copy(settings, more)
		return settings
	}
	rule := func(name string, settings map[string]any) *study.EarlyStopping {
		return &study.EarlyStopping{Name: name, Settings: settings}
	}
	all := map[string]tuner{}
	for _, algorithm := range []string{"random", "hebo", "tpe"} {
		for _, t := range []tuner{
			{name: "none"},
			{name: "asha", stopping: rule("asha", nil)},
			{name: "asha-fast", stopping: rule("asha", fast(map[string]any{"minSteps": 4, "reduction": 4}))},
			{name: "asha-unguarded", stopping: rule("asha", fast(map[string]any{"maxProgress": 1, "protect": 0}))},
			{name: "hyperband", stopping: rule("asha", fast(map[string]any{"brackets": 3}))}, // with tpe: BOHB
			{name: "median", stopping: rule("median", nil)},
			{name: "model", stopping: rule(pruner.Model, map[string]any{"maxSteps": 81})},
			{name: "model-unknown", stopping: rule(pruner.Model, nil)},
			{name: "only-9", only: 9},
			{name: "only-27", only: 27},
		} {
			for _, told := range []partial{dropped, asIs, extrapolated, stopped, censored} {
				u := t
				u.algorithm, u.told, u.name = algorithm, told, fmt.Sprintf("%s+%s:%s", algorithm, t.name, told)
				all[u.name] = u
			}
		}
	}
	for _, algorithm := range []string{"random", "tpe", "bohb", "hebo"} {
		for suffix, low := range map[string]int{"": 1, "-9": 9} {
			name := algorithm + "+promote" + suffix
			all[name] = tuner{name: name, algorithm: algorithm, promotes: low}
		}
	}
	return all
}

func runAll(ctx context.Context) error {
	all := tuners()
	path := flag.String("table", "research/benchmarks/curves.gz", "the table of curves")
	names := flag.String("tuners", "", "tuners, separated by commas: OPTIMISER+RULE:TOLD, or OPTIMISER+promote")
	seeds := flag.Int("seeds", 10, "how many seeds, from 0 on")
	out := flag.String("out", "", "a file of results; runs that it has are not played again")
	flag.Parse()
	if *out == "" {
		return errors.New("-out is missing; want a file for the results")
	}
	t, err := readTable(*path)
	if err != nil {
		return err
	}
	done, err := lines.Played(*out, func(r *result) string { return key(r.Tuner, r.Data, r.Seed) })
	if err != nil {
		return err
	}
	for seed := range *seeds {
		for name := range strings.SplitSeq(*names, ",") {
			u, ok := all[name]
			if !ok {
				return fmt.Errorf("tuner %q is unknown; want one of %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
			}
			for _, data := range t.Data {
				if done[key(name, data, seed)] {
					continue
				}
				r, err := play(ctx, u, t.task(data, seed%t.Seeds), seed)
				if err != nil {
					return fmt.Errorf("%s on %s with seed %d: %w", name, data, seed, err)
				}
				if err := lines.Append(*out, r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func key(tuner, data string, seed int) string { return fmt.Sprint(tuner, " ", data, " ", seed) }
