package tpe

import (
	"cmp"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// maxGood is the largest number of points in the density of the good ones, with a single
// objective, and with more than three: to choose many of a front by the hypervolume of so
// many objectives would take minutes.
const maxGood = 25

// goodOf returns how many of n evaluations count as good.
func goodOf(n, objectives int) int {
	good := (n + 9) / 10
	if objectives == 2 || objectives == 3 {
		return good
	}
	return min(good, maxGood)
}

// split returns the observations that count as good: of the completed ones the best tenth
// of all, rounded up. Those within all limits come first, the best of them first; then the others, those
// nearest to the limits first. Of several objectives, those are the best that no other one dominates, then
// those that only these dominate, and so on.
func split(r *optimizer.Request) map[int]bool {
	best := map[int]bool{}
	for _, i := range good(r, goodOf(len(r.Observations), len(r.Objectives))) {
		best[i] = true
	}
	return best
}

// good returns up to n observations that count as good.
func good(r *optimizer.Request, n int) []int {
	var list []int
	if len(r.Objectives) == 0 {
		list = lowest(r, n)
	} else {
		list = front(r, n)
	}
	missing := n - len(list)
	if missing == 0 || len(r.Limits) == 0 {
		return list
	}
	violations := r.Violations()
	outside := make([]int, 0, len(violations))
	for i, v := range violations {
		if v > 0 && !math.IsInf(v, 1) {
			outside = append(outside, i)
		}
	}
	slices.SortStableFunc(outside, func(a, b int) int { return cmp.Compare(violations[a], violations[b]) })
	return append(list, outside[:min(missing, len(outside))]...)
}

// front is for several objectives. Of the completed observations within all limits, it returns up to n: those
// of the first fronts.
func front(r *optimizer.Request, n int) []int {
	var within []int
	for i := range r.Observations {
		if r.Observations[i].Within() {
			within = append(within, i)
		}
	}
	costs := make([][]float64, len(within))
	for k, i := range within {
		for j, o := range r.Objectives {
			costs[k] = append(costs[k], o.Direction.Cost(r.Observations[i].Values[j]))
		}
	}
	list := firstFronts(costs, min(n, len(within)))
	for k, at := range list {
		list[k] = within[at]
	}
	return list
}

// lowest returns up to n completed observations of a single objective within all limits, the best first, of
// equal ones the earlier. It looks at each once, since few of thousands are taken.
func lowest(r *optimizer.Request, n int) []int {
	list, costs := make([]int, 0, n+1), make([]float64, 0, n+1)
	for i := range r.Observations {
		o := &r.Observations[i]
		if !o.Within() {
			continue
		}
		cost := r.Direction.Cost(o.Values.First())
		if len(list) == n && cost >= costs[n-1] {
			continue
		}
		at, _ := slices.BinarySearchFunc(costs, cost, func(known, cost float64) int {
			if known <= cost {
				return -1
			}
			return 1
		})
		list, costs = slices.Insert(list, at, i), slices.Insert(costs, at, cost)
		list, costs = list[:min(len(list), n)], costs[:min(len(costs), n)]
	}
	return list
}

// firstFronts returns n of the points: those of the first fronts and, of the front that has room
// only in part, those that together dominate the most.
func firstFronts(costs [][]float64, n int) []int {
	left := indices.Upto(len(costs))
	var first []int
	for len(first) < n {
		points := indices.Pick(costs, left)
		front := pareto.Front(points)
		inside := front
		if missing := n - len(first); len(front) > missing {
			points = indices.Pick(points, front)
			inside = indices.Pick(front, pareto.Subset(points, beyond(points), missing))
		}
		for _, k := range inside {
			first = append(first, left[k])
		}
		for _, k := range slices.Backward(front) {
			left = slices.Delete(left, k, k+1)
		}
	}
	return first
}

// beyond returns the point within which Optuna measures a front: a tenth farther from 0 than
// its worst value in each objective, or nearer to it if that is worse.
func beyond(front [][]float64) []float64 {
	reference := slices.Clone(front[0])
	for _, p := range front[1:] {
		for j, v := range p {
			reference[j] = max(reference[j], v)
		}
	}
	for j, worst := range reference {
		reference[j] = max(1.1*worst, 0.9*worst)
		if worst == 0 {
			reference[j] = 1e-12
		}
	}
	return reference
}
