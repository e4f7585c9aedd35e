package study

import "math"

// Values are what an evaluation found: one value for each objective of its
// study, in the order of Spec.Objectives. There are none where it did not
// complete.
type Values []float64

// First is the value of the first objective, NaN where there are no values.
func (v Values) First() float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return v[0]
}

// Objectives are what the study optimises, in the order of every trial's values:
// one objective today.
func (s *Spec) Objectives() []Objective { return []Objective{s.Objective} }
