package loop

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// Chance weights an acquisition function by the probability that the evaluation
// completes; the zero Chance means certainty. Pending points do not change the
// probability: it is already the expectation over how their evaluations end.
type Chance struct {
	model *surrogate.Feasibility
	// loss is the value of a failure for criteria other than the logarithm of an
	// improvement: that of the worst completed evaluation.
	loss float64
}

func newChance(model *surrogate.Feasibility, d *surrogate.Data) Chance {
	if model == nil {
		return Chance{}
	}
	return Chance{model, -slices.Max(d.Y)}
}

// Log returns the logarithm of the probability at the rows of x.
func (c Chance) Log(x *mat.Dense) []float64 {
	if c.model == nil {
		n, _ := x.Dims()
		return make([]float64, n)
	}
	return c.model.LogProbability(x)
}

// OfImprovement weights the logarithm of an improvement (Gelbart et al. 2014, Bayesian
// Optimization with Unknown Constraints).
func (c Chance) OfImprovement(value, logP float64) float64 { return value + logP }

// OfReward weights a bound on the point's reward, or a draw of it: it returns the
// expectation if a failure is worth loss.
func (c Chance) OfReward(value, logP float64) float64 {
	if logP == 0 {
		return value
	}
	p := math.Exp(logP)
	return p*value + (1-p)*c.loss
}

// of weights a criterion's value. It is a reward, or else the logarithm of an improvement.
func (c Chance) of(reward bool, value, logP float64) float64 {
	if reward {
		return c.OfReward(value, logP)
	}
	return c.OfImprovement(value, logP)
}

// gradient weights a criterion's value and gradient, given the logarithm of the
// probability and its gradient.
func (c Chance) gradient(reward bool, value float64, gradient []float64, logP float64, dLogP []float64) float64 {
	weighed := c.of(reward, value, logP)
	for k := range gradient {
		if reward {
			gradient[k] = math.Exp(logP) * (gradient[k] + dLogP[k]*(value-c.loss))
		} else {
			gradient[k] += dLogP[k]
		}
	}
	return weighed
}
