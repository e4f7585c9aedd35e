package hebo

import (
	"context"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// limits fits a model to the excess over each limit. d has the observations of p behind the
// objective's model. It is nil without limits. It returns an error and no limits if a model
// cannot be fitted.
func (o proposer) limits(
	ctx context.Context, r *optimizer.Request, p *optimizer.Problem, d *surrogate.Data, memory *memory, effort surrogate.Effort,
) (*loop.Limits, error) {
	if len(r.Limits) == 0 {
		return nil, nil
	}
	config := o.options.Surrogate
	config.Effort, config.Transform = effort, false // a power transform would stretch what matters little
	data := make([]*surrogate.Data, len(r.Limits))
	for k := range data {
		data[k] = surrogate.Observe(r.Bounded(k), r.Encoding, config)
	}
	models, fitted, err := fitEach(len(data), memory.Limits, func(k int, warm *gp.Hyperparameters) (*surrogate.Model, error) {
		return surrogate.Fit(ctx, data[k], config, warm, r.Rand)
	})
	if err != nil {
		memory.Limits = nil
		return nil, err
	}
	if fitted != nil {
		memory.rememberLimits(fitted)
	}
	var all []loop.Limit
	for _, m := range models {
		all = append(all, loop.Limit{Model: bayes.Gaussian(m.GP), Bound: m.Data.Standard(0)})
	}
	violations, outside := p.Violations(), make([]float64, len(d.Of))
	for row, i := range d.Of {
		outside[row] = violations[i]
	}
	return loop.NewLimits(all, outside), nil
}
