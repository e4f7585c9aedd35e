package hebo

import (
	"context"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// proposeLimited is Propose for one objective with limits: the expected improvement over the
// best point within all limits, weighted by the probability that a point is within them.
func (o proposer) proposeLimited(ctx context.Context, r *optimizer.Request, memory *memory) ([]optimizer.Suggestion, optimizer.State, error) {
	d := surrogate.Observe(r.Problem, r.Encoding, o.options.Surrogate)
	due := loop.Due(r, o.initial(r), d.Completed)
	batch, err := memory.Points(ctx, r, nil, due)
	if err != nil || len(batch) == r.N || len(batch) < due {
		return batch, memory.state(), err
	}
	effort := o.options.Fit.effort(d.Completed, memory.Full)
	m, err := o.model(ctx, r, d, memory)
	var limits *loop.Limits
	if m != nil {
		limits, err = o.limits(ctx, r, r.Problem, m.Data, memory, effort)
	}
	if limits == nil {
		memory.Fitted = nil
		batch, err = memory.WithoutModel(ctx, r, batch, err)
		return batch, memory.state(), err
	}
	l := loop.New(ctx, loop.Input{
		Request: r, Data: m.Data, Models: []bayes.Surrogate{bayes.Gaussian(m.GP)}, Criterion: acquisition.EI{},
		Feasibility: o.feasibility(ctx, r, memory), Limits: limits, Batch: batch,
	}, loop.Options{Candidates: o.effort.candidates, PriorWeight: o.options.PriorWeight})
	return l.Fill(ctx, batch, r.N, l.Plain()), memory.state(), nil
}

// limits fits a model to the excess over each limit. d has the observations of p behind the
// objective's model. It is nil without limits. It returns an error and no limits if a model
// cannot be fitted.
func (o proposer) limits(ctx context.Context, r *optimizer.Request, p *optimizer.Problem, d *surrogate.Data, memory *memory, effort surrogate.Effort) (*loop.Limits, error) {
	if len(r.Limits) == 0 {
		return nil, nil
	}
	config := o.options.Surrogate
	config.Effort, config.Transform = effort, false // a power transform would stretch what matters little
	var all []loop.Limit
	var fitted []gp.Hyperparameters
	complete := true
	for k := range r.Limits {
		var warm *gp.Hyperparameters
		if len(memory.Limits) == len(r.Limits) {
			warm = &memory.Limits[k]
		}
		of := surrogate.Observe(r.Bounded(k), r.Encoding, config)
		m, err := surrogate.Fit(ctx, of, config, warm, r.Rand)
		if m == nil {
			memory.Limits = nil
			return nil, err
		}
		complete = complete && err == nil
		all = append(all, loop.Limit{Model: bayes.Gaussian(m.GP), Bound: m.Data.Standard(0)})
		fitted = append(fitted, m.GP.Hyperparameters())
	}
	if complete { // the next fit must not start from one that was cut short
		memory.rememberLimits(fitted)
	}
	violations, outside := p.Violations(), make([]float64, len(d.Of))
	for row, i := range d.Of {
		outside[row] = violations[i]
	}
	return loop.NewLimits(all, outside), nil
}
