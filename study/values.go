package study

import "math"

// Values are the results of an evaluation: one value for each objective of its study,
// in the order of Spec.Objectives. They are empty if it did not complete.
type Values []float64

// First returns the value of the first objective, or NaN if there are no values.
func (v Values) First() float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return v[0]
}

// Objectives returns the objectives of the study, in the order of every trial's values:
// one objective today.
func (s *Spec) Objectives() []Objective { return []Objective{s.Objective} }
