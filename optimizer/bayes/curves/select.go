package curves

import (
	"cmp"
	"math"
	"slices"
)

// MostCurves bounds those that a model should be made of: its time grows with the third power of its points.
const MostCurves = 250

// Select returns the indices of at most MostCurves of the curves, which are in the order of their trials: those that are open, half of
// the others the best, and the rest the latest. They grow.
func Select(list []Curve, open func(i int) bool) []int {
	all := make([]int, len(list))
	costs := make([]float64, len(list))
	for i := range all {
		all[i], costs[i] = i, Least(list[i].Reports)
	}
	if len(all) <= MostCurves {
		return all
	}
	slices.SortStableFunc(all, func(a, b int) int { // first those that are open, then the best
		if open(a) != open(b) {
			return map[bool]int{true: -1, false: 1}[open(a)]
		}
		return cmp.Compare(costs[a], costs[b])
	})
	opened := slices.IndexFunc(all, func(i int) bool { return !open(i) })
	if opened < 0 {
		opened = len(all)
	}
	best := min(len(all), opened+max(0, MostCurves-opened)/2)
	rest := slices.Clone(all[best:])
	slices.SortFunc(rest, func(a, b int) int { return cmp.Compare(b, a) })
	kept := append(slices.Clone(all[:best]), rest[:max(0, min(len(rest), MostCurves-best))]...)
	slices.Sort(kept)
	return kept
}

// Least returns the least finite cost; +Inf if there is none.
func Least(reports []Report) float64 {
	cost := math.Inf(1)
	for _, r := range reports {
		if !math.IsNaN(r.Cost) && !math.IsInf(r.Cost, 0) {
			cost = min(cost, r.Cost)
		}
	}
	return cost
}

// growth of the number of reports is when a model's hyperparameters are fitted again.
const growth = 1.25

// Due reports whether the hyperparameters of a model are to be fitted again that were fitted to some reports, 0 if they were not yet.
func Due(reports, fitted int) bool { return float64(reports) >= growth*float64(fitted) }
