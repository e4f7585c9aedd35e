package study

import "math"

// MaxObjectives is the largest number of objectives of a study.
const MaxObjectives = 8

// MaxVolume is the largest number of objectives whose hypervolume is computed: with more, that
// of a few hundred trials takes seconds.
const MaxVolume = 4

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

// Objectives returns the objectives of the study, in the order of every trial's values.
func (s *Spec) Objectives() []Objective {
	if len(s.Several) > 0 {
		return s.Several
	}
	return []Objective{s.Objective}
}

// FirstObjective returns the only objective, or the first of several.
func (s *Spec) FirstObjective() *Objective {
	if len(s.Several) > 0 {
		return &s.Several[0]
	}
	return &s.Objective
}

// MetricNames returns the metrics of objectives.
func MetricNames(objectives []Objective) []string {
	names := make([]string, len(objectives))
	for i := range objectives {
		names[i] = objectives[i].Metric
	}
	return names
}

// Direction is the direction in which an objective improves.
type Direction string

// The directions of an objective.
const (
	Minimize Direction = "minimize"
	Maximize Direction = "maximize"
)

// Better reports whether the value a is strictly better than b; false if either is NaN.
func (d Direction) Better(a, b float64) bool {
	if d == Maximize {
		return a > b
	}
	return a < b
}

// Best returns the index of the best value, the first of equal ones. It skips NaN,
// and returns -1 if there is no other value.
func (d Direction) Best(values []float64) int {
	best := -1
	for i, v := range values {
		if !math.IsNaN(v) && (best < 0 || d.Better(v, values[best])) {
			best = i
		}
	}
	return best
}

// Cost returns a value as something to minimise: the value itself, or its negative if
// the objective is maximised. Applying Cost twice gives the value again.
func (d Direction) Cost(value float64) float64 {
	if d == Maximize {
		return 0 - value // -value would make -0 of 0
	}
	return value
}
