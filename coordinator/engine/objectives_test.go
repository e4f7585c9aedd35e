package engine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
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
