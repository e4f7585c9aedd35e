package tpe

import (
	"math"
	"math/rand/v2"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/vecmath"
	"github.com/fantasia-hpo/fantasia/study"
)

// recent is the number of latest points whose kernels have full weight.
const recent = 25

// parzen is a density over the columns of a group: a mixture with one kernel for each
// point, the product of a density for each column, and a wide one that stands for what
// was believed before any point (the last).
type parzen struct {
	columns []mixture
	logs    []float64 // log weights of the kernels
	below   []float64 // cumulative weights
}

// newParzen returns the density of points, which are coordinates in the order of the
// columns, the oldest first, with their weights. The wide kernel has the weight 1. With beliefs, it is
// the parameters' prior if they have one.
func newParzen(columns []column, points [][]float64, weights []float64, beliefs bool) *parzen {
	p := &parzen{columns: make([]mixture, len(columns))}
	at := make([]float64, len(points))
	for i := range columns {
		for k, x := range points {
			at[k] = x[i]
		}
		p.columns[i] = columns[i].mixture(at, beliefs)
	}
	p.weigh(weights)
	return p
}

// weigh sets the weights of the points' kernels; the wide one has the weight 1.
func (p *parzen) weigh(weights []float64) {
	weights = append(weights, 1)
	var sum float64
	for _, w := range weights {
		sum += w
	}
	p.logs, p.below = resized(p.logs, len(weights)), resized(p.below, len(weights))
	var below float64
	for k, w := range weights {
		share := w / sum
		below += share
		p.logs[k], p.below[k] = math.Log(share), below
	}
}

// ramp returns the weights of n points, the oldest first: 1 for the latest, and for
// those before them a line that rises from 1/n to 1.
func ramp(n int) []float64 {
	weights := make([]float64, n)
	old := n - recent
	for i := range weights {
		switch {
		case i >= old:
			weights[i] = 1
		case old == 1:
			weights[i] = 1 / float64(n)
		default:
			weights[i] = 1/float64(n) + (1-1/float64(n))*float64(i)/float64(old-1)
		}
	}
	return weights
}

// sample sets x to a draw from the density.
func (p *parzen) sample(x []float64, rng *rand.Rand) {
	u := rng.Float64()
	k := 0
	for k < len(p.below)-1 && p.below[k] <= u {
		k++
	}
	for i := range p.columns {
		x[i] = p.columns[i].quantile(k, rng.Float64())
	}
}

// logDensity returns the logarithm of the density at x. The density of a column with
// levels is the probability of its level. terms is scratch space for one number a
// kernel.
func (p *parzen) logDensity(x, terms []float64) float64 {
	terms, largest := p.logTerms(x, terms)
	if math.IsInf(largest, -1) {
		return largest
	}
	var sum float64
	for _, t := range terms {
		sum += math.Exp(t - largest)
	}
	return largest + math.Log(sum)
}

// near is more than the difference between logDensity and roughly.
const near = 1e-6

// roughly is logDensity with another exponential function. It is as precise, rounds in another way,
// and is several times as fast.
func (p *parzen) roughly(x, terms []float64) float64 {
	terms, largest := p.logTerms(x, terms)
	if math.IsInf(largest, -1) {
		return largest
	}
	for k := range terms {
		terms[k] -= largest
	}
	vecmath.Exp(terms, terms)
	var sum float64
	for _, t := range terms {
		sum += t
	}
	return largest + math.Log(sum)
}

// logTerms returns a logarithm for each kernel, that of its share of the density at x, and the largest of them.
func (p *parzen) logTerms(x, terms []float64) ([]float64, float64) {
	terms = append(terms[:0], p.logs...)
	for i := range p.columns {
		p.columns[i].addLogs(terms, x[i])
	}
	largest := math.Inf(-1)
	for _, t := range terms {
		if t > largest {
			largest = t
		}
	}
	return terms, largest
}

// column is a coordinate of the unit cube with the kernels that suit its parameter.
type column struct {
	optimizer.Column
	// mean and sd, or shares, are the user's prior; sd is 0 and shares nil without one.
	mean, sd float64
	shares   []float64
}

func newColumn(c optimizer.Column) column {
	of := column{Column: c}
	if prior := c.Parameter.Prior; prior != nil {
		if mean, sd, ok := c.Parameter.UnitPrior(); ok {
			of.mean, of.sd = mean, sd
		} else if c.Unordered() {
			of.shares = study.Shares(prior.Weights)
		} else {
			of.mean, of.sd = momentsOf(prior.Weights)
		}
	}
	return of
}

// believed reports whether the user gave a prior.
func (c *column) believed() bool { return c.sd > 0 || c.shares != nil }

// momentsOf returns the mean and the standard deviation on the unit interval of ordered
// levels with the given weights, at least half a level's width.
func momentsOf(weights []float64) (mean, sd float64) {
	shares, n := study.Shares(weights), float64(len(weights))
	for i, p := range shares {
		mean += p * (float64(i) + 0.5) / n
	}
	var variance float64
	for i, p := range shares {
		d := (float64(i)+0.5)/n - mean
		variance += p * d * d
	}
	return mean, max(math.Sqrt(variance), 0.5/n)
}
