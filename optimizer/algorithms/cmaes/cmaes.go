// Package cmaes implements the covariance matrix adaptation evolution strategy (Hansen
// 2016, arXiv 1604.00772) over the unit cube: integers, ordinals and stepped floats with
// a margin (CMA-ES with Margin), categories and booleans by a distribution of their own
// (that of CatCMA with Margin), and restarts with other populations (IPOP, BIPOP).
//
// It is asynchronous. Every request draws from the present distribution, however many
// points are being evaluated, and the distribution moves as soon as a population of
// results is there, in the order in which they ended. Points that were drawn from an
// earlier distribution, or were told, are taken like injected ones. Failed evaluations are
// left out of the population.
package cmaes

import (
	"context"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// Restarts selects what follows a run that has converged.
type Restarts string

// The ways to restart: with twice the population each time, or by turns with such a
// population and with a small one (the one that has used fewer evaluations so far), or
// with the same population.
const (
	IPOP  Restarts = "ipop"
	BIPOP Restarts = "bipop"
	Same  Restarts = "same"
)

// Options are the optimiser's settings; Settings documents them.
type Options struct {
	Population int
	Sigma      float64
	Restarts   Restarts
}

// Settings returns the settings with their defaults.
func Settings() setting.Set {
	return setting.Set{
		{
			Name: "population", Default: 0, Min: 0, Max: 10000,
			Doc: "Results that make a generation; 0 derives it from parameters and parallelism.",
		},
		{Name: "sigma", Default: 0.15, Min: 1e-6, Max: 1, Doc: "First standard deviation, as a share of each parameter's range."},
		{
			Name: "restarts", Default: string(BIPOP), Choices: []string{string(BIPOP), string(IPOP), string(Same)},
			Doc: "Populations after convergence: small and large, ever larger, or the same.",
		},
	}
}

// FromSettings returns the options for checked settings.
func FromSettings(v setting.Values) Options {
	return Options{Population: v.Int("population"), Sigma: v.Float("sigma"), Restarts: Restarts(v.String("restarts"))}
}

// New returns the optimiser. Its state is the distribution and the pending points as
// they were drawn. It recommends the best value, since it has no model of noise.
func New(o Options) optimizer.Optimizer { return optimizer.Guard(proposer{options: o}) }

type proposer struct {
	optimizer.BestValue
	options Options
}

// Propose implements optimizer.Proposer.
func (a proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	if r.Encoding.Dim() == 0 {
		batch, err := sobol.NewSequence(r, 0).Propose(ctx, r, r.N)
		return batch, nil, err
	}
	t := newTask(r, a.options)
	m := t.readMemory(r.State)
	if m == nil {
		m = t.begin()
	}
	t.learn(m)
	d, trial := t.drawer(m), r.First
	batch, err := r.Extend(ctx, nil, r.N, func() (optimizer.Suggestion, error) {
		point, err := d.draw()
		if err != nil {
			return optimizer.Suggestion{}, err
		}
		r.Sampler.MarkTaken(point)
		s := optimizer.Suggestion{Point: point, Source: optimizer.SourceModel, Reasons: optimizer.Reasons{Note: d.note()}}
		switch {
		case !d.stuck:
			m.Drawn = append(m.Drawn, draw{Trial: trial, Run: m.Run, Generation: m.Generation, At: d.at})
		case r.Encoding.Discrete(): // the distribution holds no new point
			t.restart(m)
			d = t.drawer(m)
			fallthrough
		default:
			s.Source, s.Reasons.Note = optimizer.SourceRandom, "drawn at random: the distribution held no point that may be evaluated"
		}
		trial++
		return s, nil
	})
	return batch, t.state(m), err
}
