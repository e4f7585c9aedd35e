package hebo

import (
	"context"
	"fmt"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

var _ optimizer.Forecaster = proposer{}

// Forecast implements optimizer.Forecaster, using the model with the default options, as Recommend does.
func (a proposer) Forecast(ctx context.Context, p *optimizer.Problem, state optimizer.State) (*optimizer.Gain, error) {
	encoding := optimizer.NewEncoding(p.Space)
	if p.Objectives != nil || len(p.Limits) > 0 || encoding.Dim() == 0 {
		return nil, nil
	}
	options := surrogate.DefaultOptions()
	d := surrogate.Observe(p, encoding, options)
	if d.Completed < optimizer.GainCompleted {
		return nil, nil
	}
	warm := readMemory(state, options.NumParams(encoding)).Fitted
	rng := optimizer.NewRand(p.Seed, len(p.Observations))
	m, err := surrogate.Fit(ctx, d, options, warm, rng)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("forecast: %w", ctx.Err())
	}
	if err == nil {
		if g, err := loop.Forecast(m, p, a.options.Noise.exact(d, encoding) > 0, rng); err == nil {
			return g, nil
		}
	}
	return nil, nil // no model, or a degenerate one: nothing is known
}
