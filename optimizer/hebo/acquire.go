package hebo

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"

	"github.com/fantasia-hpo/fantasia/optimizer/acquisition"
)

// criterion is the acquisition function of a request: it scores a posterior, and a
// larger score is better. The posterior has one variance, and a mean for each draw of
// the pending points' values.
type criterion struct {
	kind  Acquisition
	kappa float64
	// incumbents are, for each draw, the lowest posterior mean at an evaluated or
	// pending point. The lowest observed value may just have been lucky.
	incumbents []float64
	// noise is the variance of an evaluation's noise, 0 if it is ignored.
	noise  float64
	values []float64 // of the draws, reused
}

// value returns the criterion of a posterior.
func (c *criterion) value(mean []float64, variance float64) float64 {
	sd, _ := c.spread(variance)
	if c.kind == UCB {
		return acquisition.LCB(average(mean), sd, c.kappa)
	}
	c.values = c.values[:0]
	for s, m := range mean {
		if c.kind == LogPI {
			c.values = append(c.values, acquisition.LogPI(m, sd, c.incumbents[s]))
		} else {
			c.values = append(c.values, acquisition.LogEI(m, sd, c.incumbents[s]))
		}
	}
	return acquisition.LogMeanExp(c.values)
}

// gradient returns the criterion and its derivative by the posterior's variance. It
// sets dMean to the derivatives by the mean of each draw.
func (c *criterion) gradient(dMean, mean []float64, variance float64) (value, dVariance float64) {
	sd, slope := c.spread(variance)
	if c.kind == UCB {
		for s := range dMean {
			dMean[s] = -1 / float64(len(mean))
		}
		return c.value(mean, variance), c.kappa * slope
	}
	improvement := acquisition.LogEIGradient
	if c.kind == LogPI {
		improvement = acquisition.LogPIGradient
	}
	value = c.value(mean, variance)
	for s, m := range mean {
		v, byMean, bySD := improvement(m, sd, c.incumbents[s])
		// d log Σ exp v_s / dv_s is the draw's share of the sum.
		share := math.Exp(v-value) / float64(len(mean))
		dMean[s] = share * byMean
		dVariance += share * bySD * slope
	}
	return value, dVariance
}

// spread returns the standard deviation that the acquisition function uses, and its
// derivative by the posterior's variance.
func (c *criterion) spread(variance float64) (sd, slope float64) {
	if c.kind != LogEI {
		sd = math.Sqrt(variance)
		return sd, 1 / (2 * sd)
	}
	return c.learnt(variance)
}

// learnt returns the standard deviation of the posterior mean at a point after one more
// evaluation there, and its derivative by the variance. Without noise this is the
// posterior's standard deviation; large noise makes it small (Frazier, Powell and
// Dayanik 2009, the knowledge gradient of one point).
func (c *criterion) learnt(variance float64) (sd, slope float64) {
	total := variance + c.noise
	root := math.Sqrt(total)
	return variance / root, (variance + 2*c.noise) / (2 * total * root)
}

// knowledge returns the log of the expected gain in the best posterior mean from one
// more evaluation of a point, given the mean of its best rival.
func (c *criterion) knowledge(mean, variance, rival float64) float64 {
	sd, _ := c.learnt(variance)
	if mean < rival {
		mean, rival = rival, mean
	}
	return acquisition.LogEI(mean, sd, rival)
}

// name returns the criterion's name in a suggestion's reasons.
func (c *criterion) name() string { return string(c.kind) }

func average(v []float64) float64 {
	var mean float64
	for i, x := range v {
		mean += (x - mean) / float64(i+1)
	}
	return mean
}

// normals returns standard normal numbers for the draws (columns) of points (rows) as a
// Latin hypercube: each row is a random order of the midpoints of equally probable
// bins. A row sums to 0, so the mean over the draws stays at the posterior mean.
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
