package optimizer

import (
	"cmp"
	"math"

	"github.com/fantasia-hpo/fantasia/study"
)

// Within reports whether the evaluation completed within all limits.
func (o *Observation) Within() bool { return o.Outcome == OutcomeCompleted && study.Within(o.Excess) }

// Bounded returns the problem of one of the limits: the value to minimise is the excess over
// it. Of completed evaluations, an excess that is not known counts as outside. Others count as
// completed if their excess was known early.
func (p *Problem) Bounded(limit int) *Problem {
	unknown := p.unknownExcess(limit)
	return p.single(study.Minimize, func(i int) float64 {
		if e := p.Observations[i].Excess[limit]; !math.IsNaN(e) {
			return e
		}
		return unknown
	}, func(o *Observation) float64 {
		if o.Excess == nil {
			return math.NaN()
		}
		return o.Excess[limit]
	})
}

// unknownExcess returns what an excess over a limit counts as if it is not known: the largest
// known one, or else how far within the limit others are.
func (p *Problem) unknownExcess(limit int) float64 {
	least, most := 0.0, 0.0
	for i := range p.Observations {
		if o := &p.Observations[i]; o.Outcome == OutcomeCompleted && !math.IsNaN(o.Excess[limit]) {
			least, most = min(least, o.Excess[limit]), max(most, o.Excess[limit])
		}
	}
	return cmp.Or(most, -least, 1)
}

// Violations returns by how much each observation is outside of the limits: 0 within all of
// them, otherwise the sum of the shares of the largest excess over each. It is +Inf for
// evaluations that did not complete.
func (p *Problem) Violations() []float64 {
	violations := make([]float64, len(p.Observations))
	for limit := range p.Limits {
		largest := p.unknownExcess(limit)
		for i := range p.Observations {
			if o := &p.Observations[i]; o.Outcome == OutcomeCompleted && !(o.Excess[limit] <= 0) {
				share := o.Excess[limit] / largest
				if math.IsNaN(share) {
					share = 1
				}
				violations[i] += max(share, math.SmallestNonzeroFloat64)
			}
		}
	}
	for i := range violations {
		if p.Observations[i].Outcome != OutcomeCompleted {
			violations[i] = math.Inf(1)
		}
	}
	return violations
}
