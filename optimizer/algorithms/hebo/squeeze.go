package hebo

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// leastWidth is the least width of a front for squeezed, as a share of the distance from the best
// to the median value. The first front of ZDT2 is a few points at one end: with its own width,
// searches stayed there.
const leastWidth = 0.1

// hugeValues is how many widths of a front an objective's worst value lies beyond the front where
// values are squeezed. Squeezing smaller ones too brought nothing to searches of tables of networks
// and of functions.
const hugeValues = 100

// squeezed returns the data of the objectives. Where some values are huge, those are squeezed that
// are further beyond the worst on the front than the front is wide: they add nothing to the
// hypervolume, and a model of all values as they are cannot tell those on the front apart. An
// objective with a reference counts as if the front reached it.
func squeezed(r *optimizer.Request, data []*surrogate.Data) []*surrogate.Data {
	costs := costsWithin(r)
	if len(costs) == 0 {
		return data
	}
	var best [][]float64
	for _, i := range pareto.Front(costs) {
		best = append(best, costs[i])
	}
	out := slices.Clone(data)
	for k, objective := range r.Objectives {
		low, worst := extent(best, k)
		if objective.Reference != nil {
			if at := objective.Direction.Cost(*objective.Reference); at > low {
				worst = at
			}
		}
		width := worst - low
		width = max(width, leastWidth*(medianCost(costs, k)-low))
		_, most := extent(costs, k)
		if high := worst + width; most-worst > hugeValues*width && !math.IsInf(high, 0) { // sums may overflow
			out[k] = data[k].Beyond(high, width)
		}
	}
	return out
}

// costsWithin returns the costs of the observations within all limits.
func costsWithin(r *optimizer.Request) [][]float64 {
	var costs [][]float64
	for i := range r.Observations {
		o := &r.Observations[i]
		if !o.Within() {
			continue
		}
		cost := make([]float64, len(r.Objectives))
		for k := range cost {
			cost[k] = r.Objectives[k].Direction.Cost(o.Values[k])
		}
		costs = append(costs, cost)
	}
	return costs
}

// medianCost returns the upper median of the costs of an objective.
func medianCost(costs [][]float64, objective int) float64 {
	values := make([]float64, len(costs))
	for i, cost := range costs {
		values[i] = cost[objective]
	}
	slices.Sort(values)
	return values[len(values)/2]
}
