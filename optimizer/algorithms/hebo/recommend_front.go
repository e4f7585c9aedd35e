package hebo

import (
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// recommendFront is Recommend for several objectives: the front of posterior means of the
// observations within all limits, which the models of the limits must find more likely than not.
// seen is the front of the values, for want of models.
func (a proposer) recommendFront(
	ctx context.Context, p *optimizer.Problem, state optimizer.State, seen *optimizer.Recommendation,
) (*optimizer.Recommendation, error) {
	p = p.WithoutPruned()
	encoding := optimizer.NewEncoding(p.Space)
	options := surrogate.DefaultOptions()
	options.Transform, options.Effort = false, surrogate.EffortFull
	var candidates []int
	for i := range p.Observations {
		if p.Observations[i].Within() {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) < loop.MinCompleted || encoding.Dim() == 0 {
		return seen, nil
	}
	memory := readMemory(state, options.NumParams(encoding))
	e := expecting{proposer: a, encoding: encoding, options: options, candidates: candidates}
	var objectives, limits []*Expectation
	for k := range p.Objectives {
		objectives = append(objectives, e.of(ctx, p.Alone(k), kept(memory.Several, k, len(p.Objectives))))
	}
	for k := range p.Limits {
		limits = append(limits, e.of(ctx, p.Bounded(k), kept(memory.Limits, k, len(p.Limits))))
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("recommend: %w", ctx.Err())
	case slices.Contains(objectives, nil) || slices.Contains(limits, nil):
		return seen, nil
	}
	return e.front(p, objectives, limits), nil
}

// kept returns the remembered hyperparameters of one of several models; nil if there are none.
func kept(all []gp.Hyperparameters, k, n int) *gp.Hyperparameters {
	if len(all) != n {
		return nil
	}
	return &all[k]
}

// expecting predicts the outcomes at the points of the candidates, which are observations.
type expecting struct {
	proposer
	encoding   *optimizer.Encoding
	options    surrogate.Options
	candidates []int
	always     bool // fit a model also if evaluations are known to be free of noise
}

// of returns what is expected of the outcomes of p at each candidate: by a model or, if evaluations
// are known to be free of noise, the values. It is nil if no model can be fitted.
func (e expecting) of(ctx context.Context, p *optimizer.Problem, warm *gp.Hyperparameters) *Expectation {
	d := surrogate.Observe(p, e.encoding, e.options)
	exact := e.proposer.options.Noise.exact(d, e.encoding)
	x := mat.NewDense(len(e.candidates), e.encoding.Dim(), nil)
	for row, i := range e.candidates {
		x.SetRow(row, e.encoding.Encode(p.Observations[i].At()))
	}
	out := &Expectation{Mean: make([]float64, len(e.candidates)), SD: make([]float64, len(e.candidates))}
	var m *surrogate.Model
	mean, variance := out.Mean, out.SD
	if exact < 1 || e.always {
		var err error
		m, err = fitFor(ctx, p, d, e.options, warm, exact)
		if err != nil {
			return nil
		}
		mean, variance = m.GP.Posterior(x)
	}
	out.Model = m
	for row, i := range e.candidates {
		value := p.Observations[i].Values.First()
		expected, spread := value, 0.0
		if m != nil {
			expected, spread = m.Data.Moments(mean[row], variance[row])
		}
		out.Mean[row], out.SD[row] = exact*value+(1-exact)*expected, loop.MixtureSD(exact, value, expected, spread)
	}
	return out
}

// front returns the recommendation from what is expected of each objective and of the excess over
// each limit.
func (e expecting) front(p *optimizer.Problem, objectives, limits []*Expectation) *optimizer.Recommendation {
	var likely []int // rows
	outlook := Outlook{Limits: limits}
	for row := range e.candidates {
		if outlook.Within(row, -1) >= evenOdds {
			likely = append(likely, row)
		}
	}
	if likely == nil { // all of them were seen within the limits
		for row := range e.candidates {
			likely = append(likely, row)
		}
	}
	var observations []int
	var of []optimizer.Expected
	for _, row := range likely {
		i := e.candidates[row]
		x := optimizer.Expected{Trial: p.Observations[i].Trial}
		for _, o := range objectives {
			if loop.Finite(o.Mean[row]) != nil && loop.Finite(o.SD[row]) != nil {
				x.Means, x.SDs = append(x.Means, o.Mean[row]), append(x.SDs, o.SD[row])
			}
		}
		if len(x.Means) == len(objectives) {
			observations, of = append(observations, i), append(of, x)
		}
	}
	return p.RecommendFront(observations, of)
}
