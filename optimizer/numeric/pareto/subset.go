package pareto

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
)

// Subset returns the numbers of n of the points, in the order in which they were chosen: each
// time the point that adds the most to the hypervolume within the reference point, and of
// equal ones the first in lexicographic order. The greedy choice reaches at least 1 − 1/e of
// the best subset's hypervolume (Nemhauser, Wolsey and Fisher 1978). Of equal points, one
// counts, and the others come after all points that differ, in their order. Without a finite
// reference, the first in lexicographic order are chosen. n is at most the number of points.
func Subset(points [][]float64, reference []float64, n int) []int {
	order := indices.Sorted(len(points), func(a, b int) int { return slices.Compare(points[a], points[b]) })
	var again []int
	for k := len(order) - 1; k > 0; k-- {
		if slices.Equal(points[order[k]], points[order[k-1]]) {
			again = append(again, order[k])
			order = slices.Delete(order, k, k+1)
		}
	}
	if len(order) <= n {
		slices.Sort(again)
		return append(order, again[:n-len(order)]...)
	}
	infinite := func(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) }
	if slices.ContainsFunc(reference, infinite) {
		return order[:n]
	}
	return greedy(points, order, reference, n)
}

// greedy chooses n of the points in that order. What a point adds only shrinks with each chosen
// one, so that what it added before is a bound, and most points need not be looked at again.
func greedy(points [][]float64, order []int, reference []float64, n int) []int {
	bounds := make([]float64, len(order))
	for k, i := range order {
		bounds[k] = volume(points[i], reference)
	}
	chosen, taken := make([][]float64, 0, n), make([]int, 0, n)
	for len(taken) < n {
		ranked := indices.Sorted(len(order), func(a, b int) int {
			switch {
			case bounds[a] > bounds[b]:
				return -1
			case bounds[a] < bounds[b]:
				return 1
			}
			return 0
		})
		best := -1
		for _, k := range ranked {
			if best >= 0 && bounds[k] < bounds[best] {
				break
			}
			bounds[k] = adds(points[order[k]], chosen, reference)
			if best < 0 || bounds[k] > bounds[best] || bounds[k] == bounds[best] && k < best {
				best = k
			}
		}
		chosen, taken = append(chosen, points[order[best]]), append(taken, order[best])
		order, bounds = slices.Delete(order, best, best+1), slices.Delete(bounds, best, best+1)
	}
	return taken
}

// adds returns the hypervolume that p adds to that of the chosen points: its own without the
// part that they dominate too.
func adds(p []float64, chosen [][]float64, reference []float64) float64 {
	both := make([][]float64, len(chosen))
	for i, c := range chosen {
		both[i] = larger(p, c)
	}
	return volume(p, reference) - Hypervolume(both, reference)
}
