package optimizer

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// Alone returns the problem of one of several objectives. The problems of all objectives have the
// same observations.
func (p *Problem) Alone(objective int) *Problem {
	return p.single(p.Objectives[objective].Direction, p.valueOf(objective), nil)
}

// Known is Alone with the evaluations that did not complete but whose value of this objective was
// known early: they count as completed. It returns Alone's problem if there are none.
func (p *Problem) Known(objective int) *Problem {
	return p.single(p.Objectives[objective].Direction, p.valueOf(objective), func(o *Observation) float64 {
		if o.Early == nil {
			return math.NaN()
		}
		return o.Early[objective]
	})
}

// valueOf returns the values of an objective, of the observations that completed.
func (p *Problem) valueOf(objective int) func(i int) float64 {
	return func(i int) float64 { return p.Observations[i].Values[objective] }
}

// Scalar returns the problem of minimising one value in place of several objectives:
// value returns that of the i-th observation, which completed. Pruned ones whose excess over a
// limit was known early stay, without values, since the limits' problems are made of this one.
func (p *Problem) Scalar(value func(i int) float64) *Problem {
	return p.reduced(study.Minimize, func(i int, o *Observation) bool {
		if o.Outcome == OutcomeCompleted {
			o.Values = study.Values{value(i)}
		} else {
			o.Values = nil
		}
		return o.Outcome != OutcomePruned || o.Excess != nil
	})
}

// WithoutPruned returns the problem without pruned evaluations. The problems of all its objectives
// and limits have the same observations.
func (p *Problem) WithoutPruned() *Problem {
	rest := *p
	rest.Observations = slices.DeleteFunc(slices.Clone(p.Observations), func(o Observation) bool { return o.Outcome == OutcomePruned })
	return &rest
}

// single returns the problem of one value for each completed observation, and for each of those
// that did not complete whose value was known early: early returns NaN for the others, and may be
// nil. Pruned ones are left out otherwise, since their values may be missing.
func (p *Problem) single(direction study.Direction, value func(i int) float64, early func(o *Observation) float64) *Problem {
	return p.reduced(direction, func(i int, o *Observation) bool {
		if o.Outcome == OutcomeCompleted {
			o.Values = study.Values{value(i)}
		} else if early != nil {
			if known := early(o); !math.IsNaN(known) {
				o.Outcome, o.Values = OutcomeCompleted, study.Values{known}
			}
		}
		return o.Outcome != OutcomePruned
	})
}

// reduced returns the problem of one value for each observation: reduce gives it to a copy of the
// observation, and reports whether this one stays.
func (p *Problem) reduced(direction study.Direction, reduce func(i int, o *Observation) bool) *Problem {
	one := *p
	one.Objectives, one.Direction, one.Observations = nil, direction, nil
	for i, o := range p.Observations {
		if reduce(i, &o) {
			one.Observations = append(one.Observations, o)
		}
	}
	return &one
}
