// Package surrogate models a study: it prepares the observations for a Gaussian process
// and fits the process to them.
package surrogate

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate/transfer"
)

// Smoothness names a Matérn kernel.
type Smoothness string

// The Matérn kernels: once and twice differentiable.
const (
	Matern32 Smoothness = "matern32"
	Matern52 Smoothness = "matern52"
)

// Lengthscales names a prior on the kernel's lengthscales.
type Lengthscales string

// The priors on lengthscales.
const (
	// LengthscalesScaled is LogNormal(√2 + ½ ln d, √3), whose mode grows with the
	// root of the number of columns (Hvarfner, Hellsten and Nardi 2024).
	LengthscalesScaled Lengthscales = "scaled"
	// LengthscalesFlat has no prior, as in HEBO: only the likelihood counts.
	LengthscalesFlat Lengthscales = "flat"
)

// Effort is how thoroughly hyperparameters are searched for.
type Effort string

// The efforts.
const (
	// EffortWarm takes a few steps from the hyperparameters of the last request, and
	// from the priors' modes.
	EffortWarm Effort = "warm"
	// EffortFull also starts at random places, and runs until it converges.
	EffortFull Effort = "full"
)

// Options choose the parts of the model.
type Options struct {
	// Warp applies a Kumaraswamy distribution function with learnt shapes to each
	// numeric parameter.
	Warp bool
	// Transform learns a power transform of the outcomes; otherwise they are only
	// standardised.
	Transform bool
	// Unclipped standardises outcomes without squeezing the outlying ones. It does nothing
	// with Transform.
	Unclipped bool
	// Paper selects the transform, the priors and the search of HEBO's paper, without a learnt
	// mean: see paperKernel and transform.Paper. Lengthscales and Effort do nothing then.
	Paper  bool
	Kernel Smoothness
	// Linear adds a linear kernel to the Matérn one.
	Linear bool
	// Lengthscales names the prior on them; empty is LengthscalesScaled.
	Lengthscales Lengthscales
	// NoiseFloor is the least noise that the model believes in, as a share of the outcomes' variance; 0 is
	// the process's own.
	NoiseFloor float64
	// Effort is the effort of a fit; empty is EffortWarm.
	Effort Effort
	// Points is the maximum number of observations that Observe keeps; 0 is MaxPoints.
	Points int
	// Failures selects how Observe handles evaluations that did not complete; empty is
	// FailuresWorst.
	Failures Failures
	// Earlier are what earlier studies found, nil if there are none. Their weighted sum is added
	// to the kernel.
	Earlier transfer.Sources
}

// DefaultOptions returns the options behind the optimiser's defaults.
func DefaultOptions() Options {
	return Options{Transform: true, Kernel: Matern52, Linear: true, Failures: FailuresModel}
}

// Model is a process fitted to observations. It is immutable and safe for concurrent
// use.
type Model struct {
	GP      *gp.Model
	Data    *Data
	Options Options

	evidence float64 // including the hyperparameters' priors
	plain    bool    // the transform of the data was left out
}

// Columns returns how a kernel sees an encoding: values that are rounded when a point
// is evaluated are rounded inside the kernel (Garrido-Merchán and Hernández-Lobato
// 2020), and categories are either equal or not.
func Columns(encoding *optimizer.Encoding) []kernel.Column {
	out := make([]kernel.Column, encoding.Dim())
	for i, c := range encoding.Columns() {
		out[i].Categorical = c.Categorical()
		if c.Levels > 0 {
			p := c.Parameter
			out[i].Snap = func(u float64) float64 { return p.ToUnit(p.FromUnit(u)) }
		}
	}
	return out
}

// The bounds on the search for hyperparameters. A fit that starts from the last
// request's needs few steps: research/results/ablation.md shows the gain of more. Beyond
// fewPoints observations, the starts are explored on a sample of them. Beyond
// manyPoints, the sample's result is final: hundreds of points determine the
// hyperparameters well enough, and one gradient of their likelihood costs as much as
// the rest of a request.
const (
	fewPoints  = 256
	manyPoints = 400
)

// Fit returns the model of the data. It searches for hyperparameters from the priors'
// modes and, if not nil, from warm, those of an earlier fit with the same options. A
// power transform of the data is used only if the observations are
// more likely under it: outcomes gathered near an optimum are not a sample of the objective,
// and a transform that makes them look normal can hide the rest. The error wraps
// linalg.ErrNotPositiveDefinite or is ctx's; in that case the model fitted so far is
// returned with it.
func Fit(ctx context.Context, d *Data, o Options, warm *gp.Hyperparameters, rng *rand.Rand) (*Model, error) {
	best, err := fitOne(ctx, d, o, warm, rng)
	if d.plain == nil || ctx.Err() != nil {
		return best, err
	}
	// The transformed data come first, since they are used if ctx ends in between.
	plain, plainErr := fitOne(ctx, d.plain, o, warm, rng)
	switch {
	case err != nil:
		return plain, plainErr
	case ctx.Err() != nil:
		return best, plainErr // a fit that was cut short loses unfairly, or wins by chance
	case plainErr == nil && plain.evidence > best.evidence:
		plain.plain = true
		return plain, nil
	}
	return best, nil
}

// Condition returns the model of the data under the hyperparameters of an earlier fit with
// the same options, without a search. plain says that this fit chose the data without the
// power transform. The error wraps linalg.ErrNotPositiveDefinite.
func Condition(d *Data, o Options, fitted gp.Hyperparameters, plain bool) (*Model, error) {
	if plain && d.plain != nil {
		d = d.plain
	}
	k, _ := o.Covariance(d.encoding)
	conditioned, err := gp.Condition(k, fitted, d.X, d.Y)
	if err != nil {
		return nil, fmt.Errorf("condition the model: %w", err)
	}
	return &Model{GP: conditioned, Data: d, Options: o}, nil
}

// Plain reports whether the model sees the data without the power transform that they have.
func (m *Model) Plain() bool { return m.plain }

// Earlier returns the earlier studies with the weights that the model gives them; nil if it knows none.
func (m *Model) Earlier() *transfer.Weighted {
	if m.Options.Earlier == nil {
		return nil
	}
	return &transfer.Weighted{Sources: m.Options.Earlier, Weights: m.GP.Weights()}
}

// fitOne is Fit with the transform of the data. Its evidence contains the log Jacobian, so that
// fits under different transforms are compared as densities of the same outcomes.
func fitOne(ctx context.Context, d *Data, o Options, warm *gp.Hyperparameters, rng *rand.Rand) (*Model, error) {
	k, config := o.Covariance(d.encoding)
	config.Warm, config.Subset = warm, fewPoints
	switch {
	case o.Paper:
	case o.Effort == EffortFull:
		config.Starts, config.Explore, config.Polish = 4, 10, 40
	case warm != nil:
		config.Starts, config.Explore, config.Polish = 2, 4, 6
	}
	switch n := len(d.Y); {
	case n > manyPoints:
		config.Explore, config.Polish = config.Explore+config.Polish, 0
	case n > fewPoints:
		config.Polish = 2
	}
	fitted, err := gp.Fit(ctx, k, d.X, d.Y, config, rng)
	if fitted == nil {
		return nil, err
	}
	m := &Model{GP: fitted.Model, Data: d, Options: o}
	m.evidence = fitted.LogPosterior + d.logJacobian
	return m, err
}

// LogEvidence returns the log marginal likelihood of the outcomes in the
// objective's units, so that models with different transforms can be compared on
// the same observations.
func (m *Model) LogEvidence() float64 { return m.GP.LogMarginalLikelihood() + m.Data.logJacobian }
