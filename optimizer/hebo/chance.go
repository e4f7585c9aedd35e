package hebo

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/surrogate"
)

// chance weighs what an acquisition function says by the probability that the
// evaluation completes. The zero chance is certainty. Pending points leave it as it
// is: the probability is the expectation over how their evaluations end.
type chance struct {
	model *surrogate.Feasibility
	// loss is what a failure is worth to criteria that are no logarithms of an
	// improvement: as much as the worst completed evaluation.
	loss float64
}

func newChance(model *surrogate.Feasibility, d *surrogate.Data) chance {
	if model == nil {
		return chance{}
	}
	return chance{model, -slices.Max(d.Y)}
}

// log returns the logarithm of the probability at the rows of x.
func (c chance) log(x *mat.Dense) []float64 {
	if c.model == nil {
		n, _ := x.Dims()
		return make([]float64, n)
	}
	return c.model.LogProbability(x)
}

// ofImprovement weighs the logarithm of an improvement (Gelbart et al. 2014,
// Bayesian Optimization with Unknown Constraints).
func (c chance) ofImprovement(value, logP float64) float64 { return value + logP }

// ofReward weighs a bound on or a draw of how good the point is: the expectation
// where a failure is worth loss.
func (c chance) ofReward(value, logP float64) float64 {
	if logP == 0 {
		return value
	}
	p := math.Exp(logP)
	return p*value + (1-p)*c.loss
}

// of weighs a criterion's value.
func (c chance) of(kind Acquisition, value, logP float64) float64 {
	if kind == UCB {
		return c.ofReward(value, logP)
	}
	return c.ofImprovement(value, logP)
}

// gradient weighs a criterion's value and gradient, given those of the logarithm
// of the probability.
func (c chance) gradient(kind Acquisition, value float64, gradient []float64, logP float64, dLogP []float64) float64 {
	weighed := c.of(kind, value, logP)
	for k := range gradient {
		if kind == UCB {
			gradient[k] = math.Exp(logP) * (gradient[k] + dLogP[k]*(value-c.loss))
		} else {
			gradient[k] += dLogP[k]
		}
	}
	return weighed
}
