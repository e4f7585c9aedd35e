package diagnosis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// Problem returns a study's ended trials as an optimiser sees them, in the order in
// which they ended. Trials whose point is not in the study's space, which was edited since,
// are left out. took is how long the program of each ran in its last attempt; 0 if that is not known.
func Problem(s *study.Study, trials view.Trials) (p *optimizer.Problem, took []time.Duration, err error) {
	space, err := celspace.Of(s)
	if err != nil {
		return nil, nil, err
	}
	p = &optimizer.Problem{
		Space: space, Direction: s.Spec.FirstObjective().Direction,
		MaxTrials: s.Spec.Budget.MaxTrials, Parallelism: s.Spec.Parallelism, Seed: s.Spec.Algorithm.Seed,
		First: trials.Len() + 1, Objectives: s.Spec.Several, Limits: s.Spec.Limits,
		Observations: make([]optimizer.Observation, 0, trials.Len()),
	}
	times := map[int]view.Times{}
	for _, t := range view.Each(trials) {
		o := optimizer.Observation{Trial: t.Trial}
		switch t.State {
		case study.TrialCompleted:
			o.Outcome = optimizer.OutcomeCompleted
		case study.TrialFailed:
			o.Outcome = optimizer.OutcomeFailed
		case study.TrialInfeasible:
			o.Outcome = optimizer.OutcomeInfeasible
		case study.TrialPruned:
			o.Outcome = optimizer.OutcomePruned
			if s := t.Stopped; s != nil && s.Value != nil {
				o.Values, o.Step = []float64{*s.Value}, s.Step
			}
		default:
			continue
		}
		if o.Outcome == optimizer.OutcomeCompleted {
			if t.Value == nil {
				return nil, nil, fmt.Errorf("trial %d has completed without a value", t.Trial)
			}
			o.Values = []float64{*t.Value}
			if s.Spec.Several != nil {
				o.Values = t.Values
			}
			if len(o.Values) != max(1, len(s.Spec.Several)) {
				return nil, nil, fmt.Errorf("trial %d has completed with %d values for %d objectives", t.Trial, len(o.Values), len(s.Spec.Several))
			}
			o.Excess = s.Spec.Excess(o.Values, t.Metrics)
		}
		if o.Point, err = space.Normalize(t.Parameters); err != nil {
			continue
		}
		if maps.Equal(o.Point, t.Parameters) { // so that a large study has its points once in memory
			o.Point = study.Point(t.Parameters)
		}
		p.Observations = append(p.Observations, o)
		times[o.Trial] = t.Times
	}
	slices.SortFunc(p.Observations, func(a, b optimizer.Observation) int {
		return cmp.Or(times[a.Trial].Folded.Compare(times[b.Trial].Folded), cmp.Compare(a.Trial, b.Trial))
	})
	for _, o := range p.Observations {
		var ran time.Duration
		if t := times[o.Trial]; !t.Started.IsZero() && !t.Ended.IsZero() {
			ran = t.Ended.Sub(t.Started)
		}
		took = append(took, ran)
	}
	return p, took, nil
}
