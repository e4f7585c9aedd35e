package hebo

import (
	"context"
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// Outlook is what is expected of a study's completed trials, by the models behind
// recommendations.
type Outlook struct {
	// Of holds the indices of the completed observations.
	Of []int
	// Objectives and Limits have one expectation for each objective, and for the excess over
	// each limit.
	Objectives, Limits []*Expectation
}

// Expectation is what is expected at some observations' points of one objective, or of the excess
// over a limit, in its units. All slices have an element for each observation.
type Expectation struct {
	Mean, SD []float64
	// Model is nil if evaluations are known to be free of noise and only their values count. An
	// Outlook always has it.
	Model *surrogate.Model
}

// NewOutlook returns the outlook of a problem for the optimiser with the given options. Its
// models are fitted afresh, those of several objectives and of limits without a power transform.
// The error is ctx's, or wraps ErrNoModel.
func NewOutlook(ctx context.Context, options Options, p *optimizer.Problem) (*Outlook, error) {
	e := expecting{
		proposer: proposer{options, usual, nil}, encoding: optimizer.NewEncoding(p.Space), options: surrogate.DefaultOptions(), always: true,
	}
	for i := range p.Observations {
		if p.Observations[i].Outcome == optimizer.OutcomeCompleted {
			e.candidates = append(e.candidates, i)
		}
	}
	o := &Outlook{Of: e.candidates}
	if len(o.Of) == 0 || e.encoding.Dim() == 0 {
		return nil, fmt.Errorf("%w: no trial has completed, or no parameter has more than one value", ErrNoModel)
	}
	if p.Objectives == nil {
		o.Objectives = []*Expectation{e.of(ctx, p, nil)}
	}
	e.options.Transform, e.options.Effort = false, surrogate.EffortFull
	for k := range p.Objectives {
		o.Objectives = append(o.Objectives, e.of(ctx, p.Alone(k), nil))
	}
	for k := range p.Limits {
		o.Limits = append(o.Limits, e.of(ctx, p.Bounded(k), nil))
	}
	for _, x := range append(o.Objectives[:len(o.Objectives):len(o.Objectives)], o.Limits...) {
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("fit the models: %w", ctx.Err())
		case x == nil:
			return nil, fmt.Errorf("%w: one of the objectives or limits has none", ErrNoModel)
		}
	}
	return o, nil
}

// Within returns the probability that the observation in a row is within all limits but one;
// −1 leaves out none.
func (o *Outlook) Within(row, but int) float64 {
	chance := 1.0
	for k, l := range o.Limits {
		if k != but {
			chance *= l.Within(row)
		}
	}
	return chance
}

// Within returns the probability that an excess over a limit, in a row, is at most 0.
func (l *Expectation) Within(row int) float64 {
	if l.SD[row] == 0 {
		if l.Mean[row] <= 0 {
			return 1
		}
		return 0
	}
	return math.Exp(acquisition.LogPI(l.Mean[row], l.SD[row], 0))
}
