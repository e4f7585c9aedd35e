package pruner_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

// unlimited are settings with which every verdict is the rule's own.
var unlimited = map[string]any{"minCompleted": 0, "minProgress": 0, "maxProgress": 1, "protect": 0}

func with(more ...any) map[string]any {
	all := map[string]any{}
	for name, value := range unlimited {
		all[name] = value
	}
	for i := 0; i < len(more); i += 2 {
		all[more[i].(string)] = more[i+1]
	}
	return all
}

func create(t interface{ Fatal(...any) }, name string, settings map[string]any, d study.Direction) pruner.Pruner {
	if name == "threshold" && settings["upper"] == nil && settings["lower"] == nil {
		settings = map[string]any{"lower": -3, "upper": 3}
	}
	p, err := pruner.NewFor(study.EarlyStopping{Name: name, Settings: settings}, d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings map[string]any
		want     string
	}{
		{"ahsa", nil, `earlyStopping.name "ahsa" is unknown; want one of asha, median, model, percentile, patient, threshold, wilcoxon`},
		{"asha", map[string]any{"reduction": 1}, `setting "reduction": 1 is not accepted; want an integer from 2 to 1000`},
		{"patient", map[string]any{"patience": -1}, `setting "patience": -1 is not accepted; want an integer of at least 0`},
		{"median", map[string]any{"minDelta": 0.5}, `setting "minDelta": 0.5 is not accepted; want 0, or a patience of at least 0`},
		{"percentile", map[string]any{"interval": 0}, `setting "interval": 0 is not accepted; want an integer from 1`},
		{"wilcoxon", map[string]any{"minCompared": 1}, `setting "minCompared": 1 is not accepted; want an integer from 2`},
		{"median", map[string]any{"minProgress": 0.95}, `setting "maxProgress": 0.9 is not accepted; want a number from minProgress to 1`},
		{"median", map[string]any{"minSteps": 9, "maxSteps": 3}, `setting "maxSteps": 3 is not accepted; want 0, or an integer from minSteps`},
		{"median", map[string]any{"keep": 3}, `unknown setting "keep": the settings are minSteps,`},
		{"threshold", nil, `setting "upper": nothing is not accepted; want a number for upper, for lower, or for both`},
		{"threshold", map[string]any{"lower": 2, "upper": 1}, `setting "lower": 2 is not accepted; want a number that is not more than upper`},
	} {
		_, err := pruner.New(study.EarlyStopping{Name: c.name, Settings: c.settings})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want %s", c.name, c.settings, err, c.want)
		}
		var wrong *setting.Error
		if c.name != "ahsa" && !errors.As(err, &wrong) {
			t.Errorf("%s %v: %T is not a *setting.Error, which a study file's checks place at the setting", c.name, c.settings, err)
		}
	}
}

// Four trials of nine steps complete; the fifth is worse than all of them.
func worse(t *testing.T, settings map[string]any, fifth float64) (stopped []int64) {
	t.Helper()
	p := create(t, "median", settings, study.Minimize)
	for trial := 1; trial <= 4; trial++ {
		for step := int64(1); step <= 10; step++ {
			p.Report(trial, step, float64(trial))
		}
		p.End(trial, true, float64(trial))
	}
	for step := int64(1); step <= 10; step++ {
		if p.Report(5, step, fifth).Stop {
			stopped = append(stopped, step)
		}
	}
	return stopped
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		why      string
		settings map[string]any
		cost     float64
		want     []int64
	}{
		{"from 20% to 90% of the longest completed curve", nil, 9, []int64{2, 3, 4, 5, 6, 7, 8, 9}},
		{"a number of steps overrides what was learned", map[string]any{"maxSteps": 20}, 9, []int64{4, 5, 6, 7, 8, 9, 10}},
		{"not before minSteps", map[string]any{"minSteps": 5}, 9, []int64{5, 6, 7, 8, 9}},
		{"not before enough have completed", map[string]any{"minCompleted": 5}, 9, nil},
		{"not one of the best three", nil, 2.7, nil},
		{"not one of the best four", map[string]any{"protect": 4}, 3.5, nil},
		{"the first report of each span of three steps", map[string]any{"minSteps": 4, "interval": 3}, 9, []int64{4, 7}},
		{"not where fewer have reported", map[string]any{"minCompared": 5}, 9, nil},
		{"not while its reports are not worse than before", map[string]any{"patience": 2}, 9, nil},
		{"no limits", unlimited, 2.7, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
	} {
		if got := worse(t, c.settings, c.cost); !slices.Equal(got, c.want) {
			t.Errorf("%s: stops at %v, want %v", c.why, got, c.want)
		}
	}
}

// A trial whose last value is not finite is the worst at its step, however good it was before:
// each rule stops it, but not against the limits.
func TestDivergedTrials(t *testing.T) {
	for _, direction := range []study.Direction{study.Minimize, study.Maximize} {
		for _, name := range pruner.Names() {
			for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				settings := map[string]any{"minCompleted": 3, "protect": 2}
				if name == "threshold" {
					settings["upper"] = 100
				}
				if name == "patient" {
					settings["patience"] = 1
				}
				p := create(t, name, settings, direction)
				for trial := 1; trial <= 3; trial++ {
					for step := int64(1); step <= 20; step++ {
						p.Report(trial, step, float64(trial)) // not beyond 100, whatever the direction
					}
					p.End(trial, true, float64(trial))
				}
				for step := int64(1); step <= 5; step++ {
					if v := p.Report(4, step, 0); v.Stop {
						t.Fatalf("%s: the best trial is stopped at step %d: %s", name, step, v.Reason)
					}
				}
				steps := int64(1) // wilcoxon tests all steps, and patient waits
				if name == "wilcoxon" || name == "patient" {
					steps = 12
				}
				var v pruner.Verdict
				for step := int64(6); step < 6+steps && !v.Stop; step++ {
					v = p.Report(4, step, value)
				}
				if !v.Stop {
					t.Errorf("%s, %s: a trial goes on after %v", name, direction, value)
				}
				if v := p.Report(5, 1, value); v.Stop { // 5% of the steps
					if name != "threshold" && name != pruner.Model { // which have none
						t.Errorf("%s: the limits do not protect a diverged trial", name)
					}
				}
			}
		}
	}
	p := create(t, "median", nil, study.Minimize)
	for trial := 1; trial <= 3; trial++ {
		for step := int64(1); step <= 10; step++ {
			p.Report(trial, step, 1)
		}
		p.End(trial, true, 1)
	}
	p.Report(4, 1, math.NaN())
	if v := p.Report(4, 5, 0.5); v.Stop {
		t.Errorf("a trial that has recovered is stopped: %s", v.Reason)
	}
}

// Li et al. 2020, algorithm 2, with reduction 3 and rungs 1, 3, 9: of n trials in a
// rung the best n/3 go on, and always the best one.
func TestASHA(t *testing.T) {
	p := create(t, "asha", with("reduction", 3), study.Minimize)
	for i, c := range []struct {
		cost float64
		stop bool
	}{{5, false}, {6, true}, {4, false}, {7, true}, {4.5, true}, {4.2, false}} {
		if got := p.Report(i+1, 1, c.cost); got.Stop != c.stop {
			t.Errorf("trial %d with %g: %+v, want stop=%v", i+1, c.cost, got, c.stop)
		}
	}
	// Trial 1 went on when it was alone. Since then three others have overtaken it, so
	// it stops before its next rung.
	got := p.Report(1, 2, 1)
	if want := "at step 1, 3 of 6 trials were better than its 5, and the best 2 go on"; got.Reason != want {
		t.Errorf("an overtaken trial: %+v, want %s", got, want)
	}
	if got := p.Report(3, 2, 99); got.Stop {
		t.Errorf("between two rungs, the cost of the last rung counts: %+v", got)
	}
}

// Each bracket starts one rung later and has the shares of Hyperband: of R/r = 9 and
// reduction 3, algorithm 1 of Li et al. 2018 starts 9, 5 and 3 trials.
func TestBrackets(t *testing.T) {
	p := create(t, "asha", with("reduction", 3, "brackets", 3), study.Minimize)
	const trials = 1700
	stops := map[int64]int{}
	for trial := range trials {
		for step := int64(1); step <= 9; step++ {
			// Later trials are worse, so all but the first stop at their first rung.
			if p.Report(trial, step, float64(trial)).Stop {
				stops[step]++
				p.End(trial, false, math.NaN())
				break
			}
		}
	}
	for step, want := range map[int64]int{1: 900, 3: 500, 9: 300} {
		if got := stops[step]; math.Abs(float64(got-want)) > 5 {
			t.Errorf("%d trials stopped at step %d, want %d", got, step, want)
		}
	}
}

// event is what a pruner is told.
type event struct {
	trial  int
	step   int64 // 0 for the end
	cost   float64
	finish bool
}

// Any bytes are told to every pruner.
func FuzzReport(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Fuzz(func(t *testing.T, told []byte) {
		for _, name := range pruner.Names() {
			p := create(t, name, map[string]any{"minCompleted": 1}, study.Minimize)
			for ; len(told) >= 3; told = told[3:] {
				costs := []float64{math.NaN(), math.Inf(1), math.Inf(-1), float64(told[2])}
				v := tellEvent(p, event{trial: int(told[0] % 8), step: int64(told[1] / 4), cost: costs[told[1]%4], finish: told[2]%2 == 0})
				if v.Stop != (v.Reason != "") {
					t.Fatalf("%+v: a verdict to stop has a reason", v)
				}
			}
		}
	})
}

func tellEvent(p pruner.Pruner, e event) pruner.Verdict {
	if e.step == 0 {
		p.End(e.trial, e.finish, e.cost)
		return pruner.Verdict{}
	}
	return p.Report(e.trial, e.step, e.cost)
}

func costs() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64Range(-3, 3), rapid.SampledFrom([]float64{0, 1, math.NaN(), math.Inf(1), math.Inf(-1)}))
}

func drawTrials(t *rapid.T) [][]event {
	var trials [][]event
	for trial := range rapid.IntRange(1, 12).Draw(t, "trials") {
		var events []event
		step := int64(0)
		for range rapid.IntRange(0, 30).Draw(t, "reports") {
			step += rapid.Int64Range(1, 3).Draw(t, "step")
			events = append(events, event{trial: trial, step: step, cost: costs().Draw(t, "cost")})
		}
		if rapid.Bool().Draw(t, "ends") {
			events = append(events, event{trial: trial, finish: rapid.Bool().Draw(t, "finish"), cost: costs().Draw(t, "final")})
		}
		trials = append(trials, events)
	}
	return trials
}

func drawSettings(t *rapid.T, name string) map[string]any {
	settings := map[string]any{}
	if rapid.Bool().Draw(t, "unlimited") {
		settings = with()
	}
	if name == "asha" {
		settings["brackets"] = rapid.IntRange(1, 3).Draw(t, "brackets")
	}
	return settings
}

// A new leader tells the curves of one trial after the other. After that, its verdicts
// are those of the old leader.
func TestOrderBetweenTrialsDoesNotMatter(t *testing.T) {
	for _, name := range pruner.Names() {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			trials, settings := drawTrials(t), drawSettings(t, name)
			mixed, grouped := create(t, name, settings, study.Minimize), create(t, name, settings, study.Minimize)
			var turns []int
			for i, events := range trials {
				turns = append(turns, slices.Repeat([]int{i}, len(events))...)
			}
			next := make([]int, len(trials))
			for _, i := range rapid.Permutation(turns).Draw(t, "turns") {
				tellEvent(mixed, trials[i][next[i]])
				next[i]++
			}
			for _, i := range rapid.Permutation(indices(len(trials))).Draw(t, "order") {
				for _, e := range trials[i] {
					tellEvent(grouped, e)
				}
			}
			for i := range len(trials) + 1 {
				for step := int64(100); step < 103; step++ {
					e := event{trial: i, step: step, cost: costs().Draw(t, "probe")}
					if a, b := tellEvent(mixed, e), tellEvent(grouped, e); !reflect.DeepEqual(a, b) {
						t.Fatalf("trial %d: %+v in the order of the reports, %+v trial by trial", i, a, b)
					}
				}
			}
		}))
	}
}

func indices(n int) []int {
	var all []int
	for i := range n {
		all = append(all, i)
	}
	return all
}

// The direction decides how values are written, never what is stopped, except by
// threshold, whose bounds are values.
func TestDirection(t *testing.T) {
	for _, name := range pruner.Names() {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			trials, settings := drawTrials(t), drawSettings(t, name)
			least, most := settings, settings
			if name == "threshold" {
				least, most = map[string]any{"upper": 2}, map[string]any{"lower": -2}
			}
			a, b := create(t, name, least, study.Minimize), create(t, name, most, study.Maximize)
			for _, events := range trials {
				for _, e := range events {
					if va, vb := tellEvent(a, e), tellEvent(b, e); va.Stop != vb.Stop {
						t.Fatalf("%+v: minimised %+v, maximised %+v", e, va, vb)
					}
				}
			}
		}))
	}
}

// A trial that is better than all others at every step is never stopped by a pruner
// that compares trials.
func TestTheBestGoesOn(t *testing.T) {
	for _, name := range []string{"asha", "median", "percentile", "wilcoxon"} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			p := create(t, name, drawSettings(t, name), study.Minimize)
			for _, events := range drawTrials(t) {
				for _, e := range events {
					if e.cost = math.Abs(e.cost); !math.IsNaN(e.cost) {
						tellEvent(p, e)
					}
				}
			}
			for step := int64(1); step < 100; step++ {
				if v := p.Report(1000, step, -1); v.Stop {
					t.Fatalf("stopped at step %d: %s", step, v.Reason)
				}
			}
		}))
	}
}

func TestEndedTrialsAndRepeatedReportsAreNotJudged(t *testing.T) {
	p := create(t, "threshold", map[string]any{"upper": 1}, study.Minimize)
	if !p.Report(1, 5, 2).Stop {
		t.Fatal("a value beyond the threshold goes on")
	}
	if p.Report(1, 5, 3).Stop || p.Report(1, 4, 3).Stop {
		t.Error("a report counts whose step is not beyond the last")
	}
	p.End(1, false, math.NaN())
	if p.Report(1, 6, 2).Stop {
		t.Error("a trial is stopped after its end")
	}
}

// A long curve is thinned, and still compared at every step.
func TestLongCurves(t *testing.T) {
	p := create(t, "median", nil, study.Minimize)
	const steps = 10_000
	for trial := range 3 {
		for step := int64(1); step <= steps; step++ {
			p.Report(trial, step, 1/float64(step))
		}
		p.End(trial, true, 1.0/steps)
	}
	var stopped []int64
	for step := int64(1); step <= steps; step++ {
		if p.Report(3, step, 2/float64(step)).Stop {
			stopped = append(stopped, step)
		}
	}
	if n := len(stopped); n != steps*9/10-steps/5+1 || stopped[0] != steps/5 {
		t.Errorf("stopped at %d steps, want all from 20%% to 90%% of %d", n, steps)
	}
}

func Example() {
	p, err := pruner.New(study.EarlyStopping{Name: "median"})
	if err != nil {
		panic(err)
	}
	for trial := 1; trial <= 4; trial++ {
		for step := int64(1); step <= 10; step++ {
			p.Report(trial, step, float64(trial)/float64(step))
		}
		p.End(trial, true, float64(trial)/10)
	}
	for step := int64(1); step <= 10; step++ {
		if v := p.Report(5, step, 9/float64(step)); v.Stop {
			fmt.Println(v.Reason)
			break
		}
	}
	// Output: at step 2 its best value 4.5 is worse than 1.25, which the best 50% of 4 completed trials reach
}
