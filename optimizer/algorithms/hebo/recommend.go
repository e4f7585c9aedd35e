package hebo

import (
	"context"
	"fmt"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

var _ optimizer.Recommender = proposer{}

// Recommend implements optimizer.Recommender, using the model with the default options.
// If no model can be fitted, it returns the best value, with a standard deviation of 0.
// It does the same if evaluations are known to be free of noise, by the setting or
// because repeated ones agree. In a finite space without repeats, it returns the point
// with the best mix of value and posterior mean; the model then takes at least half of what it
// cannot explain for noise. Of more than surrogate.MaxPoints
// observations it considers those that suggestions use; they include the best.
func (a proposer) Recommend(ctx context.Context, p *optimizer.Problem, state optimizer.State) (*optimizer.Recommendation, error) {
	noise := a.options.Noise
	best := p.Best()
	if best == nil || noise == NoiseNo { // without reading the data
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
	fit := func() (*surrogate.Model, error) {
		return surrogate.Fit(
			ctx, d, options, readMemory(state, options.NumParams(encoding)).Fitted, optimizer.NewRand(p.Seed, len(p.Observations)),
		)
	}
	m, err := fit()
	if err == nil && exact > 0 { // such a model may follow every value, and be sure of the luckiest
		if share := unexplained(m); share > negligible {
			options.NoiseFloor = share / 2
			m, err = fit()
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("recommend: %w", ctx.Err())
	}
	if err == nil {
		if r := loop.Recommend(bayes.Gaussian(m.GP), m.Data, p, exact); r != nil {
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
