package engine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// several are two objectives, the second of which the rule of early stopping compares.
var several = []study.Objective{
	{Metric: "loss", Direction: study.Minimize, Take: study.TakeLast},
	{Metric: "size", Direction: study.Maximize, Take: study.TakeLast},
}

// A study of several objectives hands all of them to workers and optimisers, takes only results
// with a value of each, and has no best trial.
func TestSeveralObjectives(t *testing.T) {
	spec, rule := newSpec(0, 10, 4), &log{}
	spec.Definition.Spec.Objective, spec.Definition.Spec.Several = study.Objective{}, several
	spec.Definition.Spec.EarlyStopping = &study.EarlyStopping{Name: "log", Metric: "size"}
	set := Settings{Pruner: func(_ study.EarlyStopping, d study.Direction) (pruner.Pruner, error) {
		if d != study.Maximize {
			t.Errorf("the rule is made for the direction %q, want that of size", d)
		}
		return rule, nil
	}}
	r := newRig(t, spec, set)
	for trial, end := range []struct {
		values study.Values
		want   study.TrialState
	}{{study.Values{1, 2}, study.TrialCompleted}, {study.Values{1}, study.TrialFailed}, {study.Values{3, 4}, study.TrialCompleted}} {
		out := r.suggest(float64(trial) / 4)
		if diff := cmp.Diff(several, out.Publish[0].Objectives()); diff != "" {
			t.Errorf("the assignment's objectives (-want +got):\n%s", diff)
		}
		res := r.result("w", trial+1, 1, messaging.OutcomeCompleted)
		res.Values = end.values
		r.step(Finished{At: r.now, Result: res})
		if got, _ := r.e.Trial(trial + 1); got.State != end.want {
			t.Errorf("with the values %v the trial is %s, want %s", end.values, got.State, end.want)
		}
	}
	p := r.e.Problem()
	if diff := cmp.Diff(several, p.Objectives); diff != "" {
		t.Errorf("the problem's objectives (-want +got):\n%s", diff)
	}
	if got := p.Observations[2].Values; !slices.Equal(got, study.Values{3, 4}) {
		t.Errorf("the observation has the values %v, want 3 and 4", got)
	}
	if best, ok := r.e.Best(); ok {
		t.Errorf("trial %d is the best of several objectives", best.Number)
	}
	if want := []string{"trial 1 ended: true -2", "trial 2 ended: false NaN", "trial 3 ended: true -4"}; !slices.Equal(rule.lines, want) {
		t.Errorf("the rule was told %q, want %q", rule.lines, want)
	}
	r.restart() // the records of several objectives are read back
}

// A trial that is stopped early has reached the newest value of each objective, or none.
func TestStoppedWithSeveralObjectives(t *testing.T) {
	for name, test := range map[string]struct {
		first map[string]float64
		want  study.Values
	}{"all": {map[string]float64{"loss": 0.5}, study.Values{0.5, 7}}, "one is missing": {map[string]float64{"other": 1}, nil}} {
		t.Run(name, func(t *testing.T) {
			spec := newSpec(0, 10, 1)
			spec.Definition.Spec.Objective, spec.Definition.Spec.Several = study.Objective{}, several
			spec.Definition.Spec.EarlyStopping = &study.EarlyStopping{Name: "threshold", Metric: "size", Settings: map[string]any{"lower": 10}}
			r := newRig(t, spec, Settings{Pruner: pruner.NewFor})
			r.step(Capacity{At: r.now, Slots: 1, Free: 1})
			r.suggest(0.25)
			r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(1, 1), Worker: "w", At: r.now}})
			for i, metrics := range []map[string]float64{test.first, {"size": 7}} {
				r.step(Measured{At: r.now, Measurement: &messaging.Measurement{AttemptID: r.id(1, 1), Worker: "w", Step: int64(i), Metrics: metrics}})
			}
			trial, _ := r.e.Trial(1)
			if trial.Stopped == nil || !slices.Equal(trial.Stopped.Values, test.want) {
				t.Errorf("stopped is %+v, want the values %v", trial.Stopped, test.want)
			}
		})
	}
}

// compromises returns a study of two objectives after trials with these values. The references are
// 4 and 1, so that the trials dominate rectangles: 3×1 with (1, 2), 2×2 more with (2, 4), and
// 1×1 more with (3, 5).
func compromises(t *testing.T, change func(s *study.Spec), values ...study.Values) *rig {
	t.Helper()
	spec := newSpec(0, 10, 4)
	s := &spec.Definition.Spec
	s.Objective, s.Several = study.Objective{}, slices.Clone(several)
	s.Several[0].Reference, s.Several[1].Reference = new(4.0), new(1.0)
	if change != nil {
		change(s)
	}
	r := newRig(t, spec, Settings{})
	for i, v := range values {
		r.suggest(float64(i) / 8)
		res := r.result("w", i+1, 1, messaging.OutcomeCompleted)
		res.Values, res.Metrics = v, map[string]float64{"loss": v[0], "size": v[1]}
		r.step(Finished{At: r.now, Result: res})
	}
	return r
}

// The status has the size of the front and its hypervolume, and so has the one of a leader that
// loads the study.
func TestFrontInStatus(t *testing.T) {
	all := []study.Values{{1, 2}, {2, 4}, {3, 5}, {3, 5}, {5, 9}, {3, 3}}
	for name, c := range map[string]struct {
		change func(s *study.Spec)
		want   record.Front
	}{
		"references": {nil, record.Front{Size: 5, Hypervolume: new(8.0)}},
		"within a limit": {func(s *study.Spec) { s.Limits = []study.Limit{{Metric: "size", Max: new(4.0)}} },
			record.Front{Size: 2, Hypervolume: new(7.0)}},
		"one without": {func(s *study.Spec) { s.Several[0].Reference = nil }, record.Front{Size: 5}},
		"another":     {func(s *study.Spec) { s.Several[1].Reference = new(0.0) }, record.Front{Size: 5, Hypervolume: new(11.0)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := compromises(t, c.change, all...)
			if diff := cmp.Diff(&c.want, r.e.Status().Front); diff != "" {
				t.Errorf("the status (-want +got):\n%s", diff)
			}
			before := r.e.Status()
			r.restart()
			if diff := cmp.Diff(before, r.e.Status()); diff != "" {
				t.Errorf("a new leader has (-before +after):\n%s", diff)
			}
		})
	}
}

// The hypervolume ends a study that has it as its goal, after the trial that reaches it.
func TestGoalOfTheFront(t *testing.T) {
	goal := func(v float64) func(s *study.Spec) {
		return func(s *study.Spec) { s.Goal = &study.FrontGoal{Hypervolume: v} }
	}
	r := compromises(t, goal(7), study.Values{1, 2}, study.Values{3, 3})
	if !r.e.running() {
		t.Fatalf("the study has ended: %s", r.e.Status().Reason)
	}
	r.restart()
	r.step(Tick{At: r.now})
	r.suggest(0.5)
	res := r.result("w", 3, 1, messaging.OutcomeCompleted)
	res.Values = study.Values{2, 4}
	r.step(Finished{At: r.now, Result: res})
	want := "the front reached the goal: a hypervolume of 7"
	if s := r.e.Status(); s.State != study.Completed || s.Reason != want {
		t.Errorf("%s: %s, want %s", s.State, s.Reason, want)
	}
}

// A higher goal resumes a study, and other references measure anew, which may end it. A leader
// that loads it decides the same.
func TestGoalOfTheFrontChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *study.Spec)
		volume float64
		ends   bool
	}{
		"higher":            {func(s *study.Spec) { s.Goal = &study.FrontGoal{Hypervolume: 9} }, 7, false},
		"none":              {func(s *study.Spec) { s.Goal = nil }, 7, false},
		"smaller reference": {func(s *study.Spec) { s.Several[0].Reference = new(3.0) }, 4, false},
		"larger reference":  {func(s *study.Spec) { s.Several[0].Reference = new(5.0) }, 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := compromises(t, func(s *study.Spec) { s.Goal = &study.FrontGoal{Hypervolume: 7} }, study.Values{1, 2}, study.Values{2, 4})
			if r.e.running() {
				t.Fatal("the goal is not reached")
			}
			changed := r.e.Spec()
			s := &changed.Definition.Spec
			s.Several = slices.Clone(s.Several)
			c.change(s)
			r.step(Update{At: r.now, Study: changed})
			status := r.e.Status()
			if r.e.running() == c.ends || *status.Front.Hypervolume != c.volume {
				t.Errorf("%s with a hypervolume of %v: %s", status.State, *status.Front.Hypervolume, status.Reason)
			}
			r.restart()
			if diff := cmp.Diff(status, r.e.Status()); diff != "" {
				t.Errorf("a new leader has (-before +after):\n%s", diff)
			}
		})
	}
}
