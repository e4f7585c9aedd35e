package hebo

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"

	"github.com/fantasia-hpo/fantasia/optimizer/acquisition"
)

// criterion is the acquisition function of a request: what a posterior is worth,
// larger being better. The posterior has a mean for each draw of the pending
// points' values and one variance.
type criterion struct {
	kind  Acquisition
	kappa float64
	// incumbents are, for each draw, the lowest posterior mean at an evaluated
	// or pending point. The lowest value itself would be the luckiest one.
	incumbents []float64
	values     []float64 // of the draws, reused
}

// value returns the criterion of a posterior.
func (c *criterion) value(mean []float64, variance float64) float64 {
	sd := math.Sqrt(variance)
	if c.kind == UCB {
		return acquisition.LCB(average(mean), sd, c.kappa)
	}
	c.values = c.values[:0]
	for s, m := range mean {
		c.values = append(c.values, acquisition.LogEI(m, sd, c.incumbents[s]))
	}
	return acquisition.LogMeanExp(c.values)
}

// gradient returns the criterion and sets dMean, for each draw, and returns
// dVariance: its derivatives by the posterior.
func (c *criterion) gradient(dMean, mean []float64, variance float64) (value, dVariance float64) {
	sd := math.Sqrt(variance)
	if c.kind == UCB {
		for s := range dMean {
			dMean[s] = -1 / float64(len(mean))
		}
		return c.value(mean, variance), c.kappa / (2 * sd)
	}
	value = c.value(mean, variance)
	for s, m := range mean {
		v, byMean, bySD := acquisition.LogEIGradient(m, sd, c.incumbents[s])
		// d log Σ exp v_s / dv_s is the draw's share of the sum.
		share := math.Exp(v-value) / float64(len(mean))
		dMean[s] = share * byMean
		dVariance += share * bySD / (2 * sd)
	}
	return value, dVariance
}

// name is the criterion's name in a suggestion's reasons.
func (c *criterion) name() string { return string(c.kind) }

func average(v []float64) float64 {
	var mean float64
	for i, x := range v {
		mean += (x - mean) / float64(i+1)
	}
	return mean
}

// normals returns standard normal numbers for the draws (columns) of points
// (rows) as a Latin hypercube: each row is a random order of the midpoints of
// equally probable bins, so that it sums to 0 and the mean over the draws stays
// at the posterior mean.
func normals(points, draws int, rng *rand.Rand) *mat.Dense {
	z := mat.NewDense(points, draws, nil)
	for i := range points {
		row := z.RawRowView(i)
		for s, bin := range rng.Perm(draws) {
			row[s] = mathext.NormalQuantile((float64(bin) + 0.5) / float64(draws))
		}
	}
	return z
}
