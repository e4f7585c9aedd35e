// Package pareto compares points by several objectives, all of them minimised: which
// points no other one dominates, how much of the space their front dominates, and the
// space that it leaves, cut into boxes. All functions are pure, and safe for concurrent
// use.
package pareto

import (
	"cmp"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
)

// Dominates reports whether a is nowhere worse than b and somewhere better. NaN is
// neither better nor worse than anything.
func Dominates(a, b []float64) bool {
	better := false
	for i, v := range a {
		if v > b[i] {
			return false
		}
		better = better || v < b[i]
	}
	return better
}

// Front returns the numbers of the points that no other one dominates, in ascending
// order. Of equal points all are on the front.
func Front(points [][]float64) []int {
	// Whatever dominates a point comes before it in lexicographic order.
	order := indices.Sorted(len(points), func(a, b int) int { return slices.Compare(points[a], points[b]) })
	var front []int
	for _, i := range order {
		if !slices.ContainsFunc(front, func(j int) bool { return Dominates(points[j], points[i]) }) {
			front = append(front, i)
		}
	}
	slices.Sort(front)
	return front
}

// Hypervolume returns the volume of what the points dominate within the reference point:
// of all z with p ≤ z ≤ reference for one of the points p. Points that are not below the
// reference in every objective add nothing. It is exact but for rounding. Two objectives
// take O(n log n) steps; with more, the steps can grow exponentially with the objectives.
//
// It sums what each point adds to those after it (While, Bradstreet and Barone 2012, A
// Fast Way of Calculating Exact Hypervolumes). The points are sorted such that all of
// these are better in the last objective, which leaves a problem with one objective less.
func Hypervolume(points [][]float64, reference []float64) float64 {
	var inside [][]float64
	for _, p := range points {
		if below(p, reference) {
			inside = append(inside, p)
		}
	}
	return hypervolume(distinct(inside), reference)
}

// Gain returns by how much a point makes the hypervolume of a front larger.
func Gain(front [][]float64, p, reference []float64) float64 {
	if !below(p, reference) {
		return 0
	}
	var limited [][]float64
	for _, q := range front {
		if below(q, reference) {
			limited = append(limited, larger(p, q))
		}
	}
	return max(0, volume(p, reference)-hypervolume(distinct(limited), reference))
}

// below reports whether a is less than b in every objective.
func below(a, b []float64) bool {
	for i, v := range a {
		if !(v < b[i]) { //nolint:staticcheck // so that NaN is not below anything
			return false
		}
	}
	return true
}

// distinct returns the points of the front, one of each of equal ones.
func distinct(points [][]float64) [][]float64 {
	var kept [][]float64
	for _, i := range Front(points) {
		if !slices.ContainsFunc(kept, func(p []float64) bool { return slices.Equal(p, points[i]) }) {
			kept = append(kept, points[i])
		}
	}
	return kept
}

// hypervolume is Hypervolume of a front of distinct points, all below the reference. It
// sorts the points.
func hypervolume(front [][]float64, reference []float64) float64 {
	d := len(reference)
	switch {
	case len(front) == 0:
		return 0
	case d == 1:
		return reference[0] - front[0][0]
	case d == 2:
		return area(front, reference)
	case len(front) == 1:
		return volume(front[0], reference)
	}
	slices.SortFunc(front, func(a, b []float64) int { return cmp.Compare(b[d-1], a[d-1]) })
	total := 0.0
	for i, p := range front {
		// Where p and a later point q both dominate, they do so in the last objective from
		// p's value on.
		limited := make([][]float64, 0, len(front)-i-1)
		for _, q := range front[i+1:] {
			limited = append(limited, larger(p[:d-1], q[:d-1]))
		}
		alone := volume(p[:d-1], reference[:d-1]) - hypervolume(distinct(limited), reference[:d-1])
		total += alone * (reference[d-1] - p[d-1])
	}
	return total
}

// area is the hypervolume of a front of distinct points with two objectives.
func area(front [][]float64, reference []float64) float64 {
	slices.SortFunc(front, func(a, b []float64) int { return cmp.Compare(a[0], b[0]) })
	total, high := 0.0, reference[1]
	for _, p := range front {
		total += (reference[0] - p[0]) * (high - p[1])
		high = p[1]
	}
	return total
}

// volume is that of the box between a point and the reference.
func volume(p, reference []float64) float64 {
	v := 1.0
	for i, x := range p {
		v *= reference[i] - x
	}
	return v
}

// larger returns the larger of the coordinates of two points.
func larger(a, b []float64) []float64 {
	c := make([]float64, len(a))
	for i := range c {
		c[i] = max(a[i], b[i])
	}
	return c
}
