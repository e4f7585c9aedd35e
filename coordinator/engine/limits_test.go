package engine

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// memory is a limit on the metric memory.
func memory(most float64) []study.Limit { return []study.Limit{{Metric: "memory", Max: &most}} }

// bounded returns a study with a goal and a limit after trials with these values and memories.
func bounded(t *testing.T, set Settings, most, goal float64, trials ...[2]float64) *rig {
	t.Helper()
	spec := newSpec(0, 10, 4)
	spec.Definition.Spec.Limits, spec.Definition.Spec.Objective.Goal = memory(most), &goal
	if set.Pruner != nil {
		spec.Definition.Spec.EarlyStopping = &study.EarlyStopping{Name: "log", Metric: spec.Definition.Spec.Objective.Metric}
	}
	r := newRig(t, spec, set)
	for i, values := range trials {
		out := r.suggest(float64(i) / 8)
		if diff := cmp.Diff(spec.Definition.Spec.Limits, out.Publish[0].Limits); diff != "" {
			t.Errorf("the assignment's limits (-want +got):\n%s", diff)
		}
		res := r.result("w", i+1, 1, messaging.OutcomeCompleted)
		res.Values, res.Metrics = study.Values{values[0]}, map[string]float64{"memory": values[1]}
		if math.IsNaN(values[1]) {
			res.Metrics = nil // a worker leaves out what JSON cannot hold
		}
		r.step(Finished{At: r.now, Result: res})
	}
	return r
}

// Trials outside of a limit are neither the best nor do they reach the goal or have others
// compared with them.
func TestLimits(t *testing.T) {
	rule := &log{}
	set := Settings{Pruner: func(study.EarlyStopping, study.Direction) (pruner.Pruner, error) { return rule, nil }}
	r := bounded(t, set, 5, 2, [2]float64{1, 6}, [2]float64{4, 5}, [2]float64{3, math.NaN()}, [2]float64{7, 1})
	if best, ok := r.e.Best(); !ok || best.Number != 2 {
		t.Errorf("the best trial is %d, want 2", best.Number)
	}
	if !r.e.running() {
		t.Errorf("the study has ended: %s", r.e.Status().Reason)
	}
	p := r.e.Problem()
	var excess [][]float64
	for _, o := range p.Observations {
		excess = append(excess, o.Excess)
	}
	want := [][]float64{{1}, {0}, {math.NaN()}, {-4}}
	if diff := cmp.Diff(want, excess, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("the observations' excess (-want +got):\n%s", diff)
	}
	least := -4.0
	tally := &record.Limits{Within: 2, Each: []record.LimitTally{{Met: 2, Least: &least}}}
	if diff := cmp.Diff(tally, r.e.Status().Limits); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
	ends := []string{"trial 1 ended: false NaN", "trial 2 ended: true 4", "trial 3 ended: false NaN", "trial 4 ended: true 7"}
	if diff := cmp.Diff(ends, rule.lines); diff != "" {
		t.Errorf("the rule was told (-want +got):\n%s", diff)
	}
	// A trial outside of the limit is not recommended, also not as one of a front.
	front := []optimizer.Expected{{Trial: 4, Means: []float64{1}}, {Trial: 1, Means: []float64{2}}}
	r.step(Recommended{At: r.now, Recommendation: record.Recommendation{Trial: 4, Mean: 1, Position: r.e.Status().Position, Front: front}})
	if got := r.e.Status().Recommended; got.Trial != 0 {
		t.Errorf("recommended is %+v, whose front has a trial outside", got)
	}
	for _, trial := range []int{1, 4} {
		r.step(Recommended{At: r.now, Recommendation: record.Recommendation{Trial: trial, Mean: 1, Position: r.e.Status().Position}})
	}
	if got := r.e.Status().Recommended.Trial; got != 4 {
		t.Errorf("trial %d is recommended, want 4", got)
	}
}

// Other limits decide anew what is best, and may end the study. A leader that loads it decides the same.
func TestLimitsChange(t *testing.T) {
	for _, c := range []struct {
		name string
		most float64
		best int
		end  string
	}{
		{"none within", 0.5, 0, ""},
		{"tighter", 3, 4, ""},
		{"wider", 6, 1, "trial 1 reached the goal: 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := bounded(t, Settings{}, 5, 2, [2]float64{1, 6}, [2]float64{4, 5}, [2]float64{3, 9}, [2]float64{7, 1})
			r.step(Recommended{At: r.now, Recommendation: record.Recommendation{Trial: 2, Mean: 1, Position: r.e.Status().Position}})
			changed := r.e.Spec()
			changed.Definition.Spec.Limits = memory(c.most)
			r.step(Update{At: r.now, Study: changed})
			status := r.e.Status()
			if status.Best != c.best || status.Recommended.Trial != 0 || (c.end == "") != r.e.running() || c.end != "" && status.Reason != c.end {
				t.Errorf("best %d, recommended %d, %s: %s", status.Best, status.Recommended.Trial, status.State, status.Reason)
			}
			r.restart()
			if diff := cmp.Diff(status, r.e.Status()); diff != "" {
				t.Errorf("a new leader has (-before +after):\n%s", diff)
			}
		})
	}
}

// A study that ends without a trial within all limits says which limit is the hard one.
func TestLimitsUnmet(t *testing.T) {
	spec := newSpec(0, 1, 1)
	spec.Definition.Spec.Limits = append(memory(512), study.Limit{Metric: "recall", Min: new(0.9)})
	r := newRig(t, spec, Settings{})
	r.suggest(0.5)
	res := r.result("w", 1, 1, messaging.OutcomeCompleted)
	res.Values, res.Metrics = study.Values{1}, map[string]float64{"memory": 600, "recall": 0.95}
	r.step(Finished{At: r.now, Result: res})
	want := "no trial is within all limits: 0 of 1 meet memory <= 512, and the nearest has 600"
	if s := r.e.Status(); s.State != study.Completed || !strings.HasSuffix(s.Reason, want) {
		t.Errorf("%s: %s", s.State, s.Reason)
	}
}

// When an edit of a study that has ended changes which trials are within the limits, the reason says what holds now.
func TestReasonAfterAnEdit(t *testing.T) {
	spec := newSpec(0, 1, 1)
	spec.Definition.Spec.Limits = memory(512)
	r := newRig(t, spec, Settings{})
	r.suggest(0.5)
	res := r.result("w", 1, 1, messaging.OutcomeCompleted)
	res.Values, res.Metrics = study.Values{1}, map[string]float64{"memory": 600}
	r.step(Finished{At: r.now, Result: res})
	const all, none = "all 1 trials have ended (maxTrials)", "no trial is within all limits"
	for most, within := range map[float64]bool{512: false, 700: true, 500: false} {
		changed := r.e.Spec()
		changed.Definition.Spec.Limits = memory(most)
		r.step(Update{At: r.now, Study: changed})
		if s := r.e.Status(); s.State != study.Completed || !strings.HasPrefix(s.Reason, all) || strings.Contains(s.Reason, none) == within {
			t.Errorf("memory <= %g: %s: %s", most, s.State, s.Reason)
		}
		before := r.e.Status()
		r.restart()
		if diff := cmp.Diff(before, r.e.Status()); diff != "" {
			t.Errorf("a new leader has (-before +after):\n%s", diff)
		}
	}
}
