package hebo

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

var _ optimizer.Recommender = proposer{}

// Recommend implements optimizer.Recommender, using the model with the default options.
// If no model can be fitted, it returns the best value, with a standard deviation of 0.
// It does the same if evaluations are known to be free of noise, by the setting or
// because repeated ones agree. In a finite space without repeats, it returns the point
// with the best mix of value and posterior mean. Of more than surrogate.MaxPoints
// observations it considers those that suggestions use; they include the best.
func (a proposer) Recommend(ctx context.Context, p *optimizer.Problem, state optimizer.State) (*optimizer.Recommendation, error) {
	noise := a.options.Noise
	best := p.Best()
	if best == nil || noise == NoiseNo { // needs no look at the data
		return best, nil
	}
	if p.Objectives != nil {
		return a.recommendFront(ctx, p, state, best)
	}
	encoding := optimizer.NewEncoding(p.Space)
	options := surrogate.DefaultOptions()
	d := surrogate.Observe(p, encoding, options)
	if d.Completed < loop.MinCompleted || encoding.Dim() == 0 {
		return best, nil
	}
	exact := noise.exact(d, encoding)
	if exact == 1 {
		return best, nil
	}
	m, err := surrogate.Fit(ctx, d, options, readMemory(state, options.NumParams(encoding)).Fitted, optimizer.NewRand(p.Seed, len(p.Observations)))
	if ctx.Err() != nil {
		return nil, fmt.Errorf("recommend: %w", ctx.Err())
	}
	if err == nil {
		if r := recommend(m, p, exact); r != nil {
			return r, nil
		}
	}
	return best, nil // no model: the best value is still an answer
}

// evenOdds is the probability that evaluations of a finite space are free of noise
// while none was repeated. A model cannot tell: what its smooth part does not explain
// is either noise or detail, and the likelihood is the same.
const evenOdds = 0.5

// exact returns the probability that evaluations are free of noise, which is known to be 1 or 0
// except in a finite space without repeats.
func (n Noise) exact(d *surrogate.Data, encoding *optimizer.Encoding) float64 {
	switch known := n.of(d.Places()); {
	case known == surrogate.NoiseFree:
		return 1
	case known == surrogate.NoiseUnknown && encoding.Discrete():
		return evenOdds
	default:
		return 0
	}
}

// recommend returns the observation of the model with the lowest expected outcome, of those that completed
// within all limits. Evaluations are exact with the given probability, and the outcome is then
// the observed one; otherwise it is the posterior's. It is nil if the model has no such observation, or if the
// expectation is too large for a float64.
func recommend(m *surrogate.Model, p *optimizer.Problem, exact float64) *optimizer.Recommendation {
	var completed []int // rows of the data
	for row, i := range m.Data.Of {
		if p.Observations[i].Within() {
			completed = append(completed, row)
		}
	}
	if len(completed) == 0 {
		return nil
	}
	_, dim := m.Data.X.Dims()
	x := mat.NewDense(len(completed), dim, nil)
	for i, row := range completed {
		x.SetRow(i, m.Data.X.RawRowView(row))
	}
	mean, variance := m.GP.Posterior(x)
	outcomes := make([]float64, len(completed))
	for i, row := range completed {
		outcomes[i] = exact*m.Data.Y[row] + (1-exact)*mean[i]
	}
	best := loop.Lowest(outcomes, 1)[0]
	o := p.Observations[m.Data.Of[completed[best]]]
	expected, spread := m.Data.Moments(mean[best], variance[best])
	value, sd := loop.Finite(exact*o.Values.First()+(1-exact)*expected), loop.Finite(mixtureSD(exact, o.Values.First(), expected, spread))
	if value == nil || sd == nil {
		return nil
	}
	return &optimizer.Recommendation{Trial: o.Trial, Mean: *value, SD: *sd, Point: o.Point}
}

// mixtureSD returns the standard deviation of a mixture: value with probability p,
// otherwise a distribution with the given mean and standard deviation.
func mixtureSD(p, value, mean, sd float64) float64 {
	root := math.Sqrt(p)
	return math.Sqrt(1-p) * math.Hypot(sd, root*value-root*mean)
}
