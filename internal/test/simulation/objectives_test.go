package simulation

import (
	"context"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/replay"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// Studies of several objectives minimise the first one and the third, and maximise the second.
// The first value decides the others, so that values taken from two reports are noticed.

// severalObjectives gives a study so many objectives in place of its single one.
func (w *world) severalObjectives(spec map[string]any, n int) {
	delete(spec, "objective")
	all := []any{
		map[string]any{"metric": "loss", "direction": "minimize"}, map[string]any{"metric": "size", "direction": "maximize"},
		map[string]any{"metric": "time", "direction": "minimize", "reference": 0.9},
	}
	spec["objectives"] = all[:n]
	limitable(spec)
	if stop, ok := spec["earlyStopping"].(map[string]any); ok {
		stop["metric"] = "loss"
	}
}

// valuesOf returns what an evaluation finds of n objectives whose value of the first one is
// this. The others have few levels, so that values are often equal.
func valuesOf(n int, first float64) study.Values {
	values := make(study.Values, n)
	for i := range values {
		values[i] = first
		if i > 0 {
			values[i] = math.Floor(math.Mod(first*float64(9+i), 1)*8) / 8
		}
	}
	return values
}

// metricsOf are the metrics of a report whose value of the first objective is this.
func metricsOf(objectives []study.Objective, first float64) map[string]float64 {
	metrics := map[string]float64{}
	for i, v := range valuesOf(len(objectives), first) {
		metrics[objectives[i].Metric] = v
	}
	return metrics
}

// program is a function that finds the value of the first objective, which gives the others.
type program struct{ evaluation.Func }

// Evaluate calls the function.
func (p program) Evaluate(ctx context.Context, task evaluation.Task) evaluation.Ending {
	ending := p.Func.Evaluate(ctx, task)
	if objectives := task.Assignment.Objectives(); ending.Outcome == messaging.OutcomeCompleted {
		first := ending.Values.First()
		ending.Values, ending.Metrics = valuesOf(len(objectives), first), remember(metricsOf(objectives, first), first)
	} else {
		ending.Metrics = earlyMemory(task.Assignment.Trial)
	}
	return ending
}

// front checks that the ledger gives as the front those trials within all limits that no other one
// dominates, counted pair by pair; and what its status says of the limits.
func (c *checker) front(s *ledger.Records) {
	spec := &s.Study.Definition.Spec
	objectives := spec.Objectives()
	var want []int
	for i := range s.Trials {
		t := &s.Trials[i]
		if t.State != study.TrialCompleted {
			continue
		}
		if len(t.Values) != len(objectives) {
			c.fail("trial %d of %s is completed with %v; it has %d objectives", t.Number, s.Study.ID, t.Values, len(objectives))
			return
		}
		beaten := slices.ContainsFunc(s.Trials, func(other record.Trial) bool { return withinAll(spec, &other) && beats(objectives, &other, t) })
		if withinAll(spec, t) && !beaten {
			want = append(want, t.Number)
		}
	}
	front, err := s.Study.Front(s.Trials)
	var got []int
	for i := range front {
		got = append(got, front[i].Number)
	}
	if err != nil || !slices.Equal(got, want) {
		c.fail("the front of study %s is of the trials %v, want %v: %v", s.Study.ID, got, want, err)
	}
	c.limits(s, want)
}

// beats reports whether a trial is completed with values that are at least as good as another
// one's in every objective, and not equal.
func beats(objectives []study.Objective, a, b *record.Trial) bool {
	if a.State != study.TrialCompleted || slices.Equal(a.Values, b.Values) {
		return false
	}
	for i, o := range objectives {
		if x, y := a.Values[i], b.Values[i]; x != y && (x < y) != (o.Direction == study.Minimize) {
			return false
		}
	}
	return true
}

// replay checks that the study's optimiser makes the same suggestions again.
func (c *checker) replay(s *ledger.Records) {
	o, err := inject.NewOptimizer(s.Study.Definition.Spec.Algorithm)
	if err != nil {
		c.fail("study %s: %v", s.Study.ID, err)
		return
	}
	found, err := replay.Run(c.w.t.Context(), s.Study, s.Trials, replay.Optimizers{Suggest: o, Fallback: sobol.New()}, nil)
	switch {
	case err != nil:
		c.fail("study %s cannot be replayed: %v", s.Study.ID, err)
	case found.First != nil:
		c.fail("study %s was replayed, and %v", s.Study.ID, found.First)
	case found.Until != 0:
		c.fail("study %s cannot be replayed from trial %d on: %s", s.Study.ID, found.Until, found.Why)
	}
}
