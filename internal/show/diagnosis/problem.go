package diagnosis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/design"
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
		MaxTrials: s.Spec.Budget.Planned(), Parallelism: s.Spec.Parallelism, Seed: s.Spec.Algorithm.Seed,
		First: trials.Len() + 1, Objectives: s.Spec.Several, Limits: s.Spec.Limits,
		Observations: make([]optimizer.Observation, 0, trials.Len()), Earlier: optimizer.EarlierOf(&s.Spec),
	}
	times, ran := map[int]view.Times{}, map[int]time.Duration{}
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
		times[o.Trial], ran[o.Trial] = t.Times, t.Ran()
	}
	slices.SortFunc(p.Observations, func(a, b optimizer.Observation) int {
		return cmp.Or(times[a.Trial].Folded.Compare(times[b.Trial].Folded), cmp.Compare(a.Trial, b.Trial))
	})
	for _, o := range p.Observations {
		took = append(took, ran[o.Trial])
	}
	return p, took, nil
}

// The number of points at which the space is surveyed, and of points tried for them.
const (
	surveyed    = 1024
	surveyTries = 8 * surveyed
)

// survey returns up to surveyed distinct, evenly spread points of the space that
// satisfy its constraints, in the unit cube, or nil if it finds none. It fails if
// the space has too many parameters for a Sobol sequence.
func survey(p *optimizer.Problem, encoding *optimizer.Encoding) (*mat.Dense, error) {
	dim := encoding.Dim()
	sequence, err := design.NewScrambledSobol(dim, p.Seed)
	if err != nil {
		return nil, fmt.Errorf("survey the space: %w", err)
	}
	var data []float64
	seen := map[string]bool{}
	u := make([]float64, dim)
	for i := range uint32(surveyTries) {
		sequence.At(u, i)
		point := encoding.Decode(u)
		key := p.Space.Key(point)
		if seen[key] || !p.Space.Feasible(point) {
			continue
		}
		seen[key] = true
		if data = append(data, encoding.Encode(point)...); len(data) == surveyed*dim {
			break
		}
	}
	if len(data) == 0 {
		return nil, nil
	}
	return mat.NewDense(len(data)/dim, dim, data), nil
}
