package tpe

import (
	"cmp"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
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
// of all, rounded up. Of several objectives, those come first that no other one dominates, then
// those that only these dominate, and so on.
func split(r *optimizer.Request) map[int]bool {
	var completed []int
	for i, o := range r.Observations {
		if o.Outcome == optimizer.OutcomeCompleted {
			completed = append(completed, i)
		}
	}
	n := min(len(completed), goodOf(len(r.Observations), len(r.Objectives)))
	best := map[int]bool{}
	if len(r.Objectives) == 0 {
		cost := func(i int) float64 { return r.Direction.Cost(r.Observations[i].Values.First()) }
		slices.SortStableFunc(completed, func(a, b int) int { return cmp.Compare(cost(a), cost(b)) })
		for _, i := range completed[:n] {
			best[i] = true
		}
		return best
	}
	costs := make([][]float64, len(completed))
	for k, i := range completed {
		for j, o := range r.Objectives {
			costs[k] = append(costs[k], o.Direction.Cost(r.Observations[i].Values[j]))
		}
	}
	for _, k := range firstFronts(costs, n) {
		best[completed[k]] = true
	}
	return best
}

// firstFronts returns n of the points: those of the first fronts and, of the front that has room
// only in part, those that together dominate the most.
func firstFronts(costs [][]float64, n int) []int {
	left := make([]int, len(costs))
	for i := range left {
		left[i] = i
	}
	var first []int
	for len(first) < n {
		points := make([][]float64, len(left))
		for k, i := range left {
			points[k] = costs[i]
		}
		front := pareto.Front(points)
		inside := front
		if room := n - len(first); len(front) > room {
			points = points[:0]
			for _, k := range front {
				points = append(points, costs[left[k]])
			}
			inside = make([]int, room)
			for j, k := range pareto.Subset(points, beyond(points), room) {
				inside[j] = front[k]
			}
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
