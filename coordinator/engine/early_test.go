package engine

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// earlyRig starts a study with a limit on the size, which is known early, and one on the memory,
// which is not. It stops trials whose loss is above 100. Its trials are claimed by w.
func earlyRig(t *testing.T, several bool, trials int) *rig {
	t.Helper()
	spec := newSpec(0, 10, trials)
	s := &spec.Definition.Spec
	s.EarlyStopping = &study.EarlyStopping{Name: "threshold", Metric: "loss", Settings: map[string]any{"upper": 100}}
	s.Limits = append(memory(512), study.Limit{Metric: "size", Max: new(8.0), Early: true})
	if several {
		s.Objective, s.Several = study.Objective{}, []study.Objective{s.Objective, {Metric: "size", Direction: study.Minimize, Early: true}}
	}
	r := newRig(t, spec, Settings{Pruner: pruner.NewFor})
	for i := range trials {
		r.suggest(float64(i) / 8)
		r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(i+1, 1), Worker: "w", At: r.now}})
	}
	return r
}

// report reports metrics of a trial.
func (r *rig) report(trial, attempt int, step int64, metrics map[string]float64) Output {
	return r.step(Measured{At: r.now,
		Measurement: &messaging.Measurement{AttemptID: r.id(trial, attempt), Worker: "w", Step: step, Metrics: metrics}})
}

// sized finishes the first attempt of a trial with metrics.
func (r *rig) sized(trial int, o messaging.Outcome, metrics map[string]float64) {
	res := r.result("w", trial, 1, o)
	res.Metrics = metrics
	r.step(Finished{At: r.now, Result: res})
}

// The optimiser is told the limit of a trial that is stopped early, fails or is infeasible, if its
// metric is known early: by the result, by a report before it, or by a report to an earlier leader.
func TestLimitsKnownEarly(t *testing.T) {
	for _, restart := range []bool{false, true} {
		r := earlyRig(t, false, 6)
		for _, trial := range []int{1, 3, 5} {
			r.report(trial, 1, 0, map[string]float64{"size": float64(trial)})
		}
		r.report(5, 1, 1, map[string]float64{"size": 6, "memory": 1})
		if restart {
			r.restart()
		}
		r.sized(1, messaging.OutcomeFailed, nil)
		r.sized(2, messaging.OutcomeInfeasible, map[string]float64{"size": 10, "memory": 1})
		r.report(3, 1, 1, map[string]float64{"loss": 101})
		r.sized(3, messaging.OutcomePruned, map[string]float64{"memory": 2})
		r.sized(4, messaging.OutcomeFailed, map[string]float64{"size": math.Inf(1)})
		r.step(Lost{At: r.now, Attempt: r.id(5, 1), Reason: "test"})
		res := r.result("w", 6, 1, messaging.OutcomeCompleted)
		res.Values, res.Metrics = study.Values{1}, map[string]float64{"memory": 1, "size": 8}
		r.step(Finished{At: r.now, Result: res})
		var excess [][]float64
		for _, o := range r.e.Problem().Observations {
			excess = append(excess, o.Excess)
		}
		want := [][]float64{{math.NaN(), -7}, {math.NaN(), 2}, {math.NaN(), -5}, nil, {-511, 0}}
		if diff := cmp.Diff(want, excess, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("the observations' excess (-want +got):\n%s", diff)
		}
		if got, _ := r.e.Trial(3); !cmp.Equal(got.Metrics, map[string]float64{"size": 3, "memory": 2}) {
			t.Errorf("the trial that was stopped early has %v", got.Metrics)
		}
		if open, _ := r.e.Trial(5); open.State.Terminal() || open.Metrics["size"] == 0 {
			t.Errorf("the trial that was lost is %s with %v, want it to wait with its size", open.State, open.Metrics)
		}
		before := r.e.Problem().Observations
		r.restart()
		if diff := cmp.Diff(before, r.e.Problem().Observations, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("a new leader tells the optimiser (-before +after):\n%s", diff)
		}
	}
}

// Of several objectives, the one that is known early has a value of trials that did not complete.
// If its limit is no longer called early, the optimiser is not told of it.
func TestObjectivesKnownEarly(t *testing.T) {
	r := earlyRig(t, true, 3)
	r.sized(1, messaging.OutcomeFailed, map[string]float64{"size": 4, "loss": 1})
	r.sized(2, messaging.OutcomeFailed, map[string]float64{"loss": 1})
	told := func() (early []study.Values, excess [][]float64) {
		for _, o := range r.e.Problem().Observations {
			early, excess = append(early, o.Early), append(excess, o.Excess)
		}
		return early, excess
	}
	early, excess := told()
	if diff := cmp.Diff([]study.Values{{math.NaN(), 4}, nil}, early, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("the values that are known early (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]float64{{math.NaN(), -4}, nil}, excess, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("the excess (-want +got):\n%s", diff)
	}
	changed := r.e.Spec()
	changed.Definition.Spec.Limits = memory(512)
	r.step(Update{At: r.now, Study: changed})
	if _, excess = told(); !cmp.Equal(excess, [][]float64{nil, nil}) {
		t.Errorf("without the limit the excess is %v", excess)
	}
}
