package hebo

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
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

// reach is how far the values of an objective matter, as costs: the hypervolume ends a little beyond the
// worst value on the front.
type reach struct {
	worst, width float64 // of the front
	most         float64 // of all values
}

// end is a width of the front beyond it.
func (r reach) end() float64 { return r.worst + r.width }

// reaches returns the reach of each objective, by the observations within all limits; nil if there are
// none. An objective with a reference counts as if the front reached it.
func reaches(r *optimizer.Request) []reach {
	costs := costsWithin(r)
	if len(costs) == 0 {
		return nil
	}
	best := indices.Pick(costs, pareto.Front(costs))
	out := make([]reach, len(r.Objectives))
	for k, objective := range r.Objectives {
		low, worst := extent(best, k)
		if objective.Reference != nil {
			if at := objective.Direction.Cost(*objective.Reference); at > low {
				worst = at
			}
		}
		_, most := extent(costs, k)
		out[k] = reach{worst, max(worst-low, leastWidth*(medianCost(costs, k)-low)), most}
	}
	return out
}

// squeezed returns the data of the objectives. Where some values are huge, those are squeezed that
// are further beyond the worst on the front than the front is wide: they add nothing to the
// hypervolume, and a model of all values as they are cannot tell those on the front apart.
func squeezed(reaches []reach, data []*surrogate.Data) []*surrogate.Data {
	out := slices.Clone(data)
	for k, r := range reaches {
		if r.most-r.worst > hugeValues*r.width && !math.IsInf(r.end(), 0) { // sums may overflow
			out[k] = data[k].Beyond(r.end(), r.width)
		}
	}
	return out
}

// form fits a model to each form of the data. It returns that of the plain one, unless the observations
// are more likely in another form, in which it also is nearer to the values that matter where it has not
// seen them. Alone, each of the two misleads: a logarithm makes all but the front of DTLZ2 more likely, and
// searches never left its ends, while the few values near a noisy front say little. Forms that cannot be
// fitted are passed over, and all but the first if ctx ends.
func form(
	ctx context.Context, d *surrogate.Data, config surrogate.Options, end float64, warm *gp.Hyperparameters, rng *rand.Rand,
) (best *surrogate.Model, err error) {
	for _, d := range d.Forms() {
		m, failure := surrogate.Fit(ctx, d, config, warm, rng)
		switch {
		case best == nil:
			best, err = m, failure
		case failure == nil && m.LogEvidence() > best.LogEvidence() && meanError(m, end) < meanError(best, end):
			best = m
		}
	}
	return best, err
}

// meanError returns how far the outcomes up to end are from what the model expects of each without
// it, in the mean, in the objective's unit.
func meanError(m *surrogate.Model, end float64) float64 {
	var mean float64
	errors := m.Errors(end)
	for _, e := range errors {
		mean += e / float64(len(errors))
	}
	return mean
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
