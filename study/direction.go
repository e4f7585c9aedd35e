package study

import "math"

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
