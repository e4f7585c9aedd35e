package engine

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// limit is a rule that is easy to follow: it stops a trial at each report above it.
type limit float64

func (l limit) Report(_ int, _ int64, cost float64) pruner.Verdict {
	if cost <= float64(l) {
		return pruner.Verdict{}
	}
	return pruner.Verdict{Stop: true, Reason: fmt.Sprintf("%g is above %g", cost, float64(l))}
}

func (limit) End(int, bool, float64) {}

func (limit) LastStep() int64 { return lastStep }

func (limit) Length() int64                   { return lastStep }
func (limit) Curves() []pruner.Curve          { return nil }
func (limit) Ends(float64) ([]int, int, bool) { return nil, 0, false }

// lastStep is the last step of a trial for a limit; only the simulator has trials that reach it.
const lastStep = 1 << 20

// asking has a model judge the trials that a limit would stop.
type asking struct{ limit }

func (a asking) Report(trial int, step int64, cost float64) pruner.Verdict {
	return pruner.Verdict{Ask: a.limit.Report(trial, step, cost).Stop}
}

// limited makes a study stop its trials above a limit.
func limited(spec *record.Study, set *Settings, at float64) {
	spec.Definition.Spec.EarlyStopping = &study.EarlyStopping{Name: "limit", Metric: spec.Definition.Spec.Objective.Metric}
	set.Pruner = func(study.EarlyStopping, study.Direction) (pruner.Pruner, error) { return limit(at), nil }
}

// log is a rule that remembers what it was told.
type log struct{ lines []string }

func (l *log) Report(trial int, step int64, cost float64) pruner.Verdict {
	l.lines = append(l.lines, fmt.Sprintf("trial %d step %d: %g", trial, step, cost))
	return pruner.Verdict{}
}

func (l *log) End(trial int, completed bool, cost float64) {
	l.lines = append(l.lines, fmt.Sprintf("trial %d ended: %v %g", trial, completed, cost))
}

func (l *log) LastStep() int64               { return 0 }
func (*log) Length() int64                   { return 0 }
func (*log) Curves() []pruner.Curve          { return nil }
func (*log) Ends(float64) ([]int, int, bool) { return nil, 0, false }

// TestATrialThatRanToItsEndIsNotPruned checks that a trial is completed if its program had reported all of its
// steps when it was told to stop, and pruned if one was left, if it is not known how many there are, or if
// a limit's metric is missing. The same holds under the next leader.
func TestATrialThatRanToItsEndIsNotPruned(t *testing.T) {
	for _, c := range []struct {
		name    string
		lasts   []int64 // of trials that completed before
		limited bool
		reached *messaging.Reached
		values  study.Values
		metrics map[string]float64
		want    study.TrialState
	}{
		{"its last step", []int64{20, 20}, false, reachedStep(20), study.Values{150}, nil, study.TrialCompleted},
		{"a step was left", []int64{20, 20}, false, reachedStep(19), study.Values{150}, nil, study.TrialPruned},
		{"an earlier worker", []int64{20, 20}, false, nil, study.Values{150}, nil, study.TrialPruned},
		{"others differ", []int64{20, 12}, false, reachedStep(20), study.Values{150}, nil, study.TrialPruned},
		{"one other", []int64{20}, false, reachedStep(20), study.Values{150}, nil, study.TrialPruned},
		{"no value", []int64{20, 20}, false, reachedStep(20), nil, nil, study.TrialPruned},
		{"a limit is met", []int64{20, 20}, true, reachedStep(20), study.Values{150}, map[string]float64{"memory": 1}, study.TrialCompleted},
		{"a limit is unknown", []int64{20, 20}, true, reachedStep(20), study.Values{150}, nil, study.TrialPruned},
	} {
		for _, restart := range []bool{false, true} {
			spec := newSpec(0, 10, len(c.lasts)+1)
			spec.Definition.Spec.EarlyStopping = &study.EarlyStopping{Name: "threshold", Metric: "loss", Settings: map[string]any{"upper": 100}}
			if c.limited {
				spec.Definition.Spec.Limits = memory(512)
			}
			r := newRig(t, spec, Settings{Pruner: pruner.NewFor})
			n := len(c.lasts) + 1
			for trial := 1; trial <= n; trial++ {
				r.suggest(float64(trial) / 8)
				r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(trial, 1), Worker: "w", At: r.now}})
			}
			for i, last := range c.lasts {
				r.report(i+1, 1, 1, map[string]float64{"loss": 9})
				r.report(i+1, 1, last, map[string]float64{"loss": 5})
				res := r.result("w", i+1, 1, messaging.OutcomeCompleted)
				res.Values, res.Metrics = study.Values{5}, map[string]float64{"memory": 1}
				r.step(Finished{At: r.now, Result: res})
			}
			r.report(n, 1, 3, map[string]float64{"loss": 101})
			if restart {
				r.restart()
			}
			res := r.result("w", n, 1, messaging.OutcomePruned)
			res.Values, res.Metrics, res.Reached = c.values, c.metrics, c.reached
			r.step(Finished{At: r.now, Result: res})
			got, _ := r.e.Trial(n)
			if got.State != c.want || got.State == study.TrialCompleted && !slices.Equal(got.Values, c.values) {
				t.Errorf("%s, restart %t: the trial is %s with %v, want %s", c.name, restart, got.State, got.Values, c.want)
			}
			if again := r.step(Finished{At: r.now, Result: res}); len(again.Receipts) != 1 || again.Receipts[0].Disposition != messaging.Duplicate {
				t.Errorf("%s: the repeated result is answered by %+v", c.name, again.Receipts)
			}
		}
	}
}

func reachedStep(step int64) *messaging.Reached {
	return &messaging.Reached{Attempt: 1, Steps: map[string]int64{"loss": step}}
}

// TestANewLeadersRuleKnowsTheCurves checks that the rule of a new leader is told the
// same of each trial as that of its predecessor was.
func TestANewLeadersRuleKnowsTheCurves(t *testing.T) {
	spec, set := newSpec(0, 10, 2), Settings{}
	spec.Definition.Spec.Objective.Direction = study.Maximize
	spec.Definition.Spec.EarlyStopping = &study.EarlyStopping{Name: "log", Metric: "loss"}
	var rules []*log
	set.Pruner = func(_ study.EarlyStopping, d study.Direction) (pruner.Pruner, error) {
		if d != study.Maximize {
			t.Errorf("the rule is made for the direction %q", d)
		}
		rules = append(rules, &log{})
		return rules[len(rules)-1], nil
	}
	r := newRig(t, spec, set)
	r.step(Capacity{At: r.now, Slots: 2, Free: 2})
	r.suggest(0.25)
	r.suggest(0.5)
	report := func(trial int, step int64, value float64) {
		r.step(Measured{At: r.now, Measurement: &messaging.Measurement{
			AttemptID: r.id(trial, 1), Worker: "w", Step: step, Metrics: map[string]float64{"loss": value, "other": 7},
		}})
	}
	for trial := 1; trial <= 2; trial++ {
		r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(trial, 1), Worker: "w", At: r.now}})
		report(trial, 1, 0.5)
		report(trial, 2, float64(trial))
	}
	res := r.result("w", 1, 1, messaging.OutcomeCompleted)
	res.Values = study.Values{1}
	r.step(Finished{At: r.now, Result: res})
	report(1, 3, 1) // read after the result
	r.restart()
	if len(rules) != 2 {
		t.Fatalf("%d rules were made, want one for each leader", len(rules))
	}
	for _, rule := range rules {
		slices.Sort(rule.lines)
	}
	want := []string{
		"trial 1 ended: true -1", "trial 1 step 1: -0.5", "trial 1 step 2: -1", "trial 1 step 3: -1",
		"trial 2 step 1: -0.5", "trial 2 step 2: -2",
	}
	for i, rule := range rules {
		if !slices.Equal(rule.lines, want) {
			t.Errorf("leader %d told its rule %q, want %q", i+1, rule.lines, want)
		}
	}
}

// TestADivergedTrialIsStopped checks that the rule is told of a value that is not finite, from
// a worker or a client, and that the trial has then reached no value: the one before would be told
// to the optimiser as if it were the trial's.
func TestADivergedTrialIsStopped(t *testing.T) {
	for _, c := range []struct {
		name    string
		take    study.Take
		metrics map[string]float64
		names   []string
		want    study.Values
	}{
		{"a worker's", "", nil, []string{"loss"}, nil},
		{"a client's", "", map[string]float64{"loss": math.NaN()}, nil, nil},
		{"a client's infinity", "", map[string]float64{"loss": math.Inf(-1)}, nil, nil},
		{"the best counts", study.TakeBest, nil, []string{"loss"}, study.Values{0.25}},
		{"another metric", "", map[string]float64{"loss": 0.75}, []string{"other"}, study.Values{0.75}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, set := newSpec(0, 10, 1), Settings{Pruner: pruner.NewFor}
			spec.Definition.Spec.Objective.Take = c.take
			metric := "loss"
			if slices.Contains(c.names, "other") {
				metric = "other"
			}
			spec.Definition.Spec.EarlyStopping = &study.EarlyStopping{Name: "threshold", Metric: metric, Settings: map[string]any{"upper": 100}}
			r := newRig(t, spec, set)
			r.step(Capacity{At: r.now, Slots: 1, Free: 1})
			r.suggest(0.25)
			r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(1, 1), Worker: "w", At: r.now}})
			report := func(step int64, metrics map[string]float64, diverged ...string) *record.Stopped {
				r.step(Measured{At: r.now, Measurement: &messaging.Measurement{
					AttemptID: r.id(1, 1), Worker: "w", Step: step, Metrics: metrics, Diverged: diverged,
				}})
				return r.e.trials.numbered(1).rec.Stopped
			}
			if s := report(1, map[string]float64{"loss": 0.25, "other": 1}); s != nil {
				t.Fatalf("stopped by %+v", s)
			}
			s := report(2, c.metrics, c.names...)
			if s == nil || s.Step != 2 || !slices.Equal(s.Values, c.want) {
				t.Errorf("stopped by %+v, want step 2 and %v", s, c.want)
			}
			r.restart()
			if again := r.e.trials.numbered(1).rec.Stopped; again == nil || again.Step != 2 {
				t.Errorf("the next leader has %+v", again)
			}
		})
	}
}
