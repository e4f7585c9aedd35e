package picture

import (
	"math"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
)

// thinned returns the indices, in order, of at most limit points that look like all of
// them: in each of equally wide stretches of X the first, the last, the least and the
// greatest point (M4 of Jugel et al. 2014, Proceedings of the VLDB Endowment 7). So no
// extreme value is ever left out. Points MUST be in the order of their X.
func thinned(points []Point, limit int) []int {
	n := len(points)
	if n <= limit {
		return spread(n, n)
	}
	stretches := max(1, limit/4)
	first, last := points[0].X, points[n-1].X
	at := func(i int) int {
		if !(last > first) {
			return i * stretches / n
		}
		return min(stretches-1, int((points[i].X-first)/(last-first)*float64(stretches)))
	}
	var kept []int
	for from := 0; from < n; {
		to, low, high := from, from, from
		for ; to < n && at(to) == at(from); to++ {
			if points[to].Y < points[low].Y {
				low = to
			}
			if points[to].Y > points[high].Y {
				high = to
			}
		}
		a, b := min(low, high), max(low, high)
		for _, i := range []int{from, a, b, to - 1} {
			if len(kept) == 0 || kept[len(kept)-1] < i {
				kept = append(kept, i)
			}
		}
		from = to
	}
	return kept
}

// spread returns at most limit of the indices 0…n-1, evenly spread, with both ends.
func spread(n, limit int) []int {
	indices := make([]int, min(n, limit))
	for i := range indices {
		indices[i] = int(math.Round(float64(i) * float64(n-1) / float64(max(1, len(indices)-1))))
	}
	return indices
}

// pick returns the elements at the indices.
func pick[T any](all []T, indices []int) []T {
	return each.Of(indices, func(i int) T { return all[i] })
}
