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

// Options choose the parts of the model.
type Options struct{}

// DefaultOptions are the options that the optimiser's defaults use.
func DefaultOptions() Options { return Options{} }

// Model is a process that was fitted to observations. It is immutable and safe
// for concurrent use.
type Model struct {
	GP      *gp.Model
	Data    *Data
	Options Options
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
// needs few steps. Beyond fewPoints observations the starts are explored on a
// sample of them, and beyond manyPoints what the sample says is taken as it is:
// the hyperparameters of hundreds of points are known well enough, and one
// gradient of their likelihood costs as much as all the rest of a request.
const (
	fewPoints  = 256
	manyPoints = 400
)

// noisePrior is twice as wide, in log space, as gp.DefaultConfig's: objectives
// here range from exact functions to validation errors of a few samples. A model
// that must believe in noise measures the same place again and again.
var noisePrior = gp.LogNormal{Mu: -4, Sigma: 2}

// Fit returns the model of the data, its hyperparameters found from warm, those
// of an earlier fit of the same options if not nil, and from the priors'. The
// error is ctx's, or wraps linalg.ErrNotPositiveDefinite.
func Fit(ctx context.Context, d *Data, o Options, warm *gp.Hyperparameters, rng *rand.Rand) (*Model, error) {
	config := gp.DefaultConfig(d.encoding.Dim())
	config.Noise.Prior = noisePrior
	config.Warm, config.Subset = warm, fewPoints
	if warm != nil {
		config.Starts, config.Explore, config.Polish = 2, 4, 6
	}
	switch n := len(d.Y); {
	case n > manyPoints:
		config.Explore, config.Polish = config.Explore+config.Polish, 0
	case n > fewPoints:
		config.Polish = 2
	}
	fitted, err := gp.Fit(ctx, kernel.NewMatern52(columns(d.encoding)), d.X, d.Y, config, rng)
	if err != nil {
		return nil, err
	}
	return &Model{GP: fitted.Model, Data: d, Options: o}, nil
}

// NumParams returns the number of the kernel's hyperparameters for an encoding.
func (o Options) NumParams(encoding *optimizer.Encoding) int { return encoding.Dim() + 1 }
