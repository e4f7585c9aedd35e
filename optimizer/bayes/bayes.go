// Package bayes defines the exchangeable parts of a Bayesian optimiser: a Surrogate, which
// predicts the objective from the evaluations so far, and an Acquisition, which scores
// such a prediction. The optimiser's loop knows no more of either than is said here.
// Package bayestest holds the tests that every implementation passes.
//
// Outcomes are standardised, and lower is better. Points are rows in the unit cube.
package bayes

import (
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
)

// Surrogate is a model of the objective that has been fitted to evaluations. It is
// immutable and safe for concurrent use.
type Surrogate interface {
	// Len returns the number of evaluations.
	Len() int
	// Noise returns the variance of an evaluation's noise, not negative.
	Noise() float64
	// Lengthscales returns, in log space, how far the effect of each column reaches.
	Lengthscales() []float64
	// Posterior returns the mean and the variance of the objective, without noise, at the
	// rows of x. Variances are positive.
	Posterior(x mat.Matrix) (mean, variance []float64)
	// Sample draws functions from the posterior and returns their values at the m rows of
	// x, a column for each function. z, of the same size, holds independent standard
	// normal numbers. The error means that the model cannot be sampled there.
	Sample(x, z mat.Matrix) (*mat.Dense, error)
	// Fantasies returns the model without pending points.
	Fantasies() Fantasies
}

// Fantasies is a Surrogate that is conditioned further, on points that are still being
// evaluated. It is not safe for concurrent use.
type Fantasies interface {
	// Believe adds the rows of x with the posterior mean as their value. It leaves the
	// mean unchanged everywhere.
	Believe(x mat.Matrix)
	// Posterior returns the posterior mean and variance at the rows of x, without noise.
	// Variances are positive, and an added point never raises them.
	Posterior(x mat.Matrix) (mean, variance []float64)
	// Gradients returns the posterior at the rows of x and its derivatives by their
	// coordinates. Derivatives by columns that the model rounds are 0.
	Gradients(x mat.Matrix) *gp.Gradients
	// Candidates returns the rows of x as points whose posterior is needed again after
	// points have been added.
	Candidates(x mat.Matrix) *gp.Candidates
}

// Known is what an Acquisition knows beside the posterior that it scores.
type Known struct {
	// Incumbent is the lowest posterior mean at an evaluated or pending point. The lowest
	// observed value may just have been lucky.
	Incumbent float64
	// Noise is the variance of an evaluation's noise, 0 if it is ignored.
	Noise float64
}

// Acquisition scores a posterior; package acquisition has implementations. A larger score is better. It has no state and is safe
// for concurrent use.
type Acquisition interface {
	// Name returns the name that users know it by.
	Name() string
	// Value returns the score of a point with the given posterior.
	Value(known *Known, mean, variance float64) float64
	// Gradient returns the score and its derivatives by the mean and the variance.
	Gradient(known *Known, mean, variance float64) (value, dMean, dVariance float64)
	// Reward reports whether the score is in the unit of the outcomes, with the sign
	// changed. Otherwise it is the logarithm of something that a failure makes 0.
	Reward() bool
}

// Joint scores the posteriors of several objectives at a point together. A larger score is
// better, and is the logarithm of something that a failure makes 0. It is immutable and
// safe for concurrent use.
type Joint interface {
	// Name returns the name that users know it by.
	Name() string
	// Value returns the score of a point with the given posterior of each objective.
	Value(mean, variance []float64) float64
	// Gradient returns the score, and sets dMean and dVariance to its derivatives.
	Gradient(mean, variance, dMean, dVariance []float64) float64
}

// Average returns the mean of v, which must not be empty.
func Average(v []float64) float64 {
	var mean float64
	for i, x := range v {
		mean += (x - mean) / float64(i+1)
	}
	return mean
}

// Gaussian returns a Gaussian process as a Surrogate. The first of its kernel's
// hyperparameters MUST be the lengthscales of its columns.
func Gaussian(m *gp.Model) Surrogate { return gaussian{m} }

type gaussian struct{ *gp.Model }

func (g gaussian) Noise() float64 { return g.Hyperparameters().Noise }

func (g gaussian) Lengthscales() []float64 { return g.Hyperparameters().Kernel[:g.Dim()] }

func (g gaussian) Fantasies() Fantasies { return g.Model.Fantasies() }
