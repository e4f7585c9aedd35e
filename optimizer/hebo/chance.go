package hebo

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/surrogate"
)

// chance weights an acquisition function by the probability that the evaluation
// completes; the zero chance means certainty. Pending points do not change the
// probability: it is already the expectation over how their evaluations end.
type chance struct {
	model *surrogate.Feasibility
	// loss is the value of a failure for criteria other than the logarithm of an
	// improvement: that of the worst completed evaluation.
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

// ofImprovement weights the logarithm of an improvement (Gelbart et al. 2014, Bayesian
// Optimization with Unknown Constraints).
func (c chance) ofImprovement(value, logP float64) float64 { return value + logP }

// ofReward weights a bound on the point's reward, or a draw of it: it returns the
// expectation if a failure is worth loss.
func (c chance) ofReward(value, logP float64) float64 {
	if logP == 0 {
		return value
	}
	p := math.Exp(logP)
	return p*value + (1-p)*c.loss
}

// of weights a criterion's value.
func (c chance) of(by bayes.Acquisition, value, logP float64) float64 {
	if by.Reward() {
		return c.ofReward(value, logP)
	}
	return c.ofImprovement(value, logP)
}

// gradient weights a criterion's value and gradient, given the logarithm of the
// probability and its gradient.
func (c chance) gradient(by bayes.Acquisition, value float64, gradient []float64, logP float64, dLogP []float64) float64 {
	weighed := c.of(by, value, logP)
	for k := range gradient {
		if by.Reward() {
			gradient[k] = math.Exp(logP) * (gradient[k] + dLogP[k]*(value-c.loss))
		} else {
			gradient[k] += dLogP[k]
		}
	}
	return weighed
}
