package study

import (
	"math"
	"slices"
)

// MaxObjectives is the largest number of objectives of a study.
const MaxObjectives = 8

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

// Dominates reports whether the values a are nowhere worse than b and somewhere better.
func Dominates(objectives []Objective, a, b Values) bool {
	better := false
	for i := range objectives {
		if d := objectives[i].Direction; d.Better(b[i], a[i]) {
			return false
		} else if d.Better(a[i], b[i]) {
			better = true
		}
	}
	return better
}

// Front returns the indices of the values that no others dominate, in ascending order.
// Equal values are all part of the front. Values that do not have one number for each
// objective are skipped.
func Front(objectives []Objective, all []Values) []int {
	var front []int
	for i, v := range all {
		if len(v) != len(objectives) || slices.ContainsFunc(front, func(j int) bool { return Dominates(objectives, all[j], v) }) {
			continue
		}
		front = slices.DeleteFunc(front, func(j int) bool { return Dominates(objectives, v, all[j]) })
		front = append(front, i)
	}
	return front
}
