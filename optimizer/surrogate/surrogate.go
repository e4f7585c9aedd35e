// Package surrogate is the model of a study: its observations as a Gaussian
// process sees them, and the process that was fitted to them.
package surrogate

import (
	"context"
	"math/rand/v2"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/kernel"
)

// Smoothness names a Matérn kernel.
type Smoothness string

// The Matérn kernels: once and twice differentiable.
const (
	Matern32 Smoothness = "matern32"
	Matern52 Smoothness = "matern52"
)

// Lengthscales names a prior of the kernel's lengthscales.
type Lengthscales string

// The priors of lengthscales.
const (
	// LengthscalesScaled is LogNormal(√2 + ½ ln d, √3), whose mode grows with the
	// root of the number of columns (Hvarfner, Hellsten and Nardi 2024).
	LengthscalesScaled Lengthscales = "scaled"
	// LengthscalesShort is Gamma(3, 6), BoTorch's before, with mode ⅓ whatever the
	// number of columns.
	LengthscalesShort Lengthscales = "short"
	// LengthscalesFlat prefers none, as HEBO does: their likelihood alone counts.
	LengthscalesFlat Lengthscales = "flat"
)

// Effort is how hard hyperparameters are searched for.
type Effort string

// The efforts.
const (
	// EffortWarm takes a few steps from those of the last request, and from the
	// priors' modes.
	EffortWarm Effort = "warm"
	// EffortFull also starts at random places, and goes on to the end.
	EffortFull Effort = "full"
)

// Options choose the parts of the model.
type Options struct {
	// Warp puts a Kumaraswamy distribution function, whose shapes are learnt,
	// before each numeric parameter.
	Warp bool
	// Transform learns a power transform of the outcomes; else they are only
	// standardised.
	Transform bool
	Kernel    Smoothness
	// Linear adds a linear kernel to the Matérn one.
	Linear bool
	// Lengthscales names their prior; empty is LengthscalesScaled.
	Lengthscales Lengthscales
	// Effort is that of a fit; empty is EffortWarm.
	Effort Effort
	// Failures says what Observe makes of evaluations that did not complete;
	// empty is FailuresWorst.
	Failures Failures
}

// DefaultOptions are those of the optimiser's defaults.
func DefaultOptions() Options {
	return Options{Transform: true, Kernel: Matern52, Linear: true, Failures: FailuresModel}
}

// Model is a process that was fitted to observations. It is immutable and safe
// for concurrent use.
type Model struct {
	GP      *gp.Model
	Data    *Data
	Options Options

	evidence float64 // with the hyperparameters' priors
}

// columns says how the kernel sees an encoding: values that are rounded when a
// point is evaluated are rounded inside the kernel (Garrido-Merchán and
// Hernández-Lobato 2020), and categories are either equal or not.
func columns(encoding *optimizer.Encoding) []kernel.Column {
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

// The search for hyperparameters. A fit that starts from the last request's
// needs few steps: docs/benchmarks.md has what more of them bring. Beyond fewPoints
// observations the starts are explored on a sample of them, and beyond manyPoints
// what the sample says is taken as it is: the hyperparameters of hundreds of points
// are known well enough, and one gradient of their likelihood costs as much as all
// the rest of a request.
const (
	fewPoints  = 256
	manyPoints = 400
)

// Fit returns the model of the data, its hyperparameters found from warm, those
// of an earlier fit of the same options if not nil, and from the priors'. Where
// the data have a power transform, it is used if the observations are more likely
// under it: the outcomes that a search has gathered near its optimum are no
// sample of the objective, and a transform that makes them look normal can hide
// the rest. The error is ctx's, then together with what was fitted by its end, or
// wraps linalg.ErrNotPositiveDefinite.
func Fit(ctx context.Context, d *Data, o Options, warm *gp.Hyperparameters, rng *rand.Rand) (*Model, error) {
	best, err := fitOne(ctx, d, o, warm, rng)
	if d.plain == nil || ctx.Err() != nil {
		return best, err
	}
	plain, plainErr := fitOne(ctx, d.plain, o, warm, rng)
	switch {
	case err != nil:
		return plain, plainErr
	case ctx.Err() != nil:
		return best, plainErr // a fit that was cut short loses unfairly, or wins by chance
	case plainErr == nil && plain.evidence > best.evidence:
		return plain, nil
	}
	return best, nil
}

// fitOne is Fit with the transform that the data have.
func fitOne(ctx context.Context, d *Data, o Options, warm *gp.Hyperparameters, rng *rand.Rand) (*Model, error) {
	k, config := o.kernel(d.encoding)
	config.Warm, config.Subset = warm, fewPoints
	switch {
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
