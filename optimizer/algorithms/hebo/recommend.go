package hebo

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

var _ optimizer.Recommender = proposer{}

// Recommend implements optimizer.Recommender, using the model with the default options.
// If no model can be fitted, it returns the best value, with a standard deviation of 0.
// It does the same if evaluations are known to be free of noise, by the setting or
// because repeated ones agree. In a finite space without repeats, it returns the point
// with the best mix of value and posterior mean; the model then takes at least half of what it
// cannot explain for noise. With limits, it is a point that is more likely than not within them. Of more than surrogate.MaxPoints
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
	warm := readMemory(state, options.NumParams(encoding)).Fitted
	m, err := fitFor(ctx, p, d, options, warm, exact)
	if err == nil && p.Limits != nil {
		p = a.likely(ctx, p, encoding, options)
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

// fitFor fits the model of a recommendation, to evaluations that are free of noise with some probability.
func fitFor(
	ctx context.Context, p *optimizer.Problem, d *surrogate.Data, options surrogate.Options, warm *gp.Hyperparameters, exact float64,
) (*surrogate.Model, error) {
	fit := func(floor float64) (*surrogate.Model, error) {
		with := options
		with.NoiseFloor = max(options.NoiseFloor, floor)
		return surrogate.Fit(ctx, d, with, warm, optimizer.NewRand(p.Seed, len(p.Observations)))
	}
	if exact > 0 {
		return fitFloored(fit)
	}
	return fit(0)
}

// likely returns the problem in which only those evaluations are within all limits of which the models of
// the limits find it more likely than not: others were within them by luck. It returns p if there are none.
func (a proposer) likely(
	ctx context.Context, p *optimizer.Problem, encoding *optimizer.Encoding, options surrogate.Options,
) *optimizer.Problem {
	options.Transform = false // as suggestions do
	rest := p.WithoutPruned()
	e := expecting{proposer: a, encoding: encoding, options: options}
	var of []int // the candidates' indices in p
	pruned := 0
	for i := range p.Observations {
		switch o := &p.Observations[i]; {
		case o.Outcome == optimizer.OutcomePruned:
			pruned++
		case o.Within():
			e.candidates, of = append(e.candidates, i-pruned), append(of, i)
		}
	}
	outlook := Outlook{}
	for k := range p.Limits {
		x := e.of(ctx, rest.Bounded(k), nil)
		if x == nil {
			return p
		}
		outlook.Limits = append(outlook.Limits, x)
	}
	sure := *p
	sure.Observations = slices.Clone(p.Observations)
	left := 0
	for row, i := range of {
		if outlook.Within(row, -1) >= evenOdds {
			left++
		} else {
			sure.Observations[i].Excess = []float64{math.Inf(1)}
		}
	}
	if left == 0 {
		return p
	}
	return &sure
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
