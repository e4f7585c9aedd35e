package pareto_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// slowSubset chooses greedily by the definition: the point whose hypervolume together with those
// chosen before is largest, the first in lexicographic order of equal ones.
func slowSubset(points [][]float64, reference []float64, n int) []int {
	var taken []int
	var chosen [][]float64
	for len(taken) < n {
		best, most := -1, math.Inf(-1)
		for i, p := range points {
			if slices.Contains(taken, i) {
				continue
			}
			v := pareto.Hypervolume(append(slices.Clone(chosen), p), reference)
			if better := v > most+1e-9; better || v > most-1e-9 && slices.Compare(p, points[best]) < 0 {
				best, most = i, v
			}
		}
		taken, chosen = append(taken, best), append(chosen, points[best])
	}
	return taken
}

func TestSubsetIsGreedy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for objectives := 2; objectives <= 4; objectives++ {
		reference := slices.Repeat([]float64{1.1}, objectives)
		for n := 1; n < 12; n++ {
			points := make([][]float64, 12)
			for i := range points {
				for range objectives {
					points[i] = append(points[i], rng.Float64())
				}
			}
			if diff := cmp.Diff(slowSubset(points, reference, n), pareto.Subset(points, reference, n)); diff != "" {
				t.Errorf("%d of %v (-want +got):\n%s", n, points, diff)
			}
		}
	}
}

func TestSubsetOfEqualPoints(t *testing.T) {
	points := [][]float64{{2, 1}, {1, 2}, {2, 1}, {1, 2}, {1, 2}}
	if diff := cmp.Diff([]int{1, 0, 2}, pareto.Subset(points, []float64{3, 3}, 3)); diff != "" {
		t.Errorf("three of two different points (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1}, pareto.Subset(points, []float64{math.Inf(1), 3}, 1)); diff != "" {
		t.Errorf("one within an infinite reference (-want +got):\n%s", diff)
	}
}
