package hebo

import (
	"context"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
)

// Cost says how the time that an evaluation is expected to take counts.
type Cost string

// The values of Cost.
const (
	// CostNone counts all evaluations alike.
	CostNone Cost = "none"
	// CostCooled divides the acquisition function by the expected time to a power that falls from 1, after the
	// initial design, to 0, at the end of the budget of trials or time (Lee et al. 2020, Cost-aware Bayesian optimization).
	CostCooled Cost = "cooled"
	// CostPerSecond divides it by the expected time.
	CostPerSecond Cost = "per-second"
)

// cost returns how the expected time counts in a request; nil if it does not, or if too little is known of it.
// It draws nothing from the request's generator.
func (o proposer) cost(ctx context.Context, r *optimizer.Request) *loop.Cost {
	power := o.power(r)
	if power == 0 {
		return nil
	}
	times, err := o.times.Of(ctx, r.Encoding, r.Observations, r.Seed)
	if err != nil { // too few have ended, or the request must be answered at once
		return nil
	}
	return &loop.Cost{Times: times, Power: power}
}

// power returns the power of the expected time.
func (o proposer) power(r *optimizer.Request) float64 {
	switch o.options.Cost {
	case CostPerSecond:
		return 1
	case CostCooled:
		if t := r.Time; t != nil {
			return min(1, max(0, t.Left/t.Budget))
		}
		initial := o.initial(r)
		left := float64(r.MaxTrials-len(r.Observations)) / float64(max(1, r.MaxTrials-initial))
		return min(1, max(0, left))
	}
	return 0
}
