package loop

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// leastDensity bounds a prior's density from below, relative to its maximum, so that no
// place is ruled out.
const leastDensity = 1e-12

// Priors are the priors that users gave for a space's parameters; nil means no priors.
type Priors struct {
	encoding    *optimizer.Encoding
	columns     []columnPrior
	conditional bool // a column with a prior may be inactive
}

// columnPrior is the prior of a column: a normal distribution, weights of the levels, or
// none.
type columnPrior struct {
	mean, sd float64   // 0 if the prior is not normal
	logs     []float64 // logs of the levels' weights; the greatest is 0
	below    []float64 // cumulative share of the levels' weights
}

// NewPriors returns nil if no parameter has a prior.
func NewPriors(encoding *optimizer.Encoding) *Priors {
	b := &Priors{encoding: encoding, columns: make([]columnPrior, encoding.Dim())}
	some := false
	for i, c := range encoding.Columns() {
		prior := c.Parameter.Prior
		if prior == nil {
			continue
		}
		some = true
		b.conditional = b.conditional || len(c.Parameter.When) > 0
		if mean, sd, ok := c.Parameter.UnitPrior(); ok {
			b.columns[i] = columnPrior{mean: mean, sd: sd}
			continue
		}
		b.columns[i] = weighted(prior.Weights)
	}
	if !some {
		return nil
	}
	return b
}

func weighted(weights []float64) columnPrior {
	var c columnPrior
	largest, sum := slices.Max(weights), 0.0
	for _, w := range weights {
		c.logs = append(c.logs, math.Log(w/largest))
		sum += w / largest
		c.below = append(c.below, sum)
	}
	for i := range c.below {
		c.below[i] /= sum
	}
	return c
}

// quantile maps a coordinate that is uniform on the unit interval to one distributed as
// the prior.
func (c *columnPrior) quantile(u float64) float64 {
	switch {
	case c.sd > 0:
		normal := distuv.Normal{Mu: c.mean, Sigma: c.sd}
		low, high := normal.CDF(0), normal.CDF(1)
		p := low + u*(high-low)
		if !(p > 0 && p < 1) {
			return min(1, max(0, c.mean))
		}
		return min(1, max(0, c.mean+c.sd*mathext.NormalQuantile(p)))
	case c.below != nil:
		k, _ := slices.BinarySearch(c.below, u)
		return (float64(min(k, len(c.below)-1)) + 0.5) / float64(len(c.below))
	}
	return u
}

// Draw maps a point that is uniform in the unit cube to one distributed as the priors.
func (b *Priors) Draw(x []float64) {
	if b == nil {
		return
	}
	for i := range x {
		x[i] = b.columns[i].quantile(x[i])
	}
}

// Log returns the logarithm of the priors' density at x, relative to the maximum and
// bounded below. It adds its gradient times weight to dst unless dst is nil.
func (b *Priors) Log(dst, x []float64, weight float64) float64 {
	if b == nil {
		return 0
	}
	var point study.Point
	if b.conditional {
		point = b.encoding.Decode(x)
	}
	var sum float64
	active := make([]bool, len(x))
	for i, c := range b.encoding.Columns() {
		_, active[i] = point[c.Parameter.Name]
		active[i] = active[i] || !b.conditional
		switch prior := &b.columns[i]; {
		case !active[i]:
		case prior.sd > 0:
			z := (x[i] - prior.mean) / prior.sd
			sum -= z * z / 2
		case prior.logs != nil:
			k := int(x[i] * float64(len(prior.logs)))
			sum += prior.logs[min(k, len(prior.logs)-1)]
		}
	}
	density := math.Exp(sum)
	for i := range dst {
		if c := &b.columns[i]; c.sd > 0 && active[i] {
			dst[i] -= weight * density / (density + leastDensity) * (x[i] - c.mean) / (c.sd * c.sd)
		}
	}
	return math.Log((density + leastDensity) / (1 + leastDensity))
}

// priorPower returns the power of the prior in πBO's acquisition function (Hvarfner et al.
// 2022, πBO: Augmenting Acquisition Functions with User Beliefs): β/n after n
// evaluations. The default of β is a tenth of the budget.
func priorPower(beta float64, r *optimizer.Request) float64 {
	if beta == 0 {
		beta = float64(r.MaxTrials) / 10
	}
	return beta / float64(max(1, len(r.Observations)))
}

// PriorTerm returns what is known of a place apart from its outcome, as a contribution to its value: the
// logarithm of the priors' density to the power PriorPower, and what the expected time takes away.
func (l *Loop) PriorTerm(x []float64) float64 { return l.priorTerm(nil, x) }

// priorTerm is PriorTerm. It adds its gradient to dst unless dst is nil.
func (l *Loop) priorTerm(dst, x []float64) float64 {
	return l.PriorPower*l.Priors.Log(dst, x, l.PriorPower) + l.Options.Cost.term(dst, x)
}

// priorTerms returns the PriorTerm of each place.
func (l *Loop) priorTerms(places []Place) []float64 {
	values := make([]float64, len(places))
	for i := range values {
		values[i] = l.PriorPower * l.Priors.Log(nil, places[i].X, 0)
	}
	l.Options.Cost.addTerms(values, places)
	return values
}
