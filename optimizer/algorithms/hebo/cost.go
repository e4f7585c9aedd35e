package hebo

import (
	"context"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/duration"
)

// Cost says how the time that an evaluation is expected to take counts or, in a study with a cost, what it is expected to cost.
type Cost string

// The values of Cost.
const (
	// CostAuto is CostCooled in a study with a budget of time whose earlier studies say how long their evaluations
	// took, and CostNone in any other: only there it was near the best sooner also on tables that had no part in the choice.
	CostAuto Cost = "auto"
	// CostNone counts all evaluations alike.
	CostNone Cost = "none"
	// CostCooled divides the acquisition function by the expected time or cost to a power that falls from 1, after the
	// initial design, to 0, at the end of the budget of trials, time or cost (Lee et al. 2020, Cost-aware Bayesian optimization).
	CostCooled Cost = "cooled"
	// CostPerSecond divides it by the expected time, or by the expected cost: it is then per unit of cost.
	CostPerSecond Cost = "per-second"
)

// cost returns how the expected time counts in a request; nil if it does not, or if too little is known of it.
// It draws nothing from the request's generator.
func (o proposer) cost(ctx context.Context, r *optimizer.Request) *loop.Cost {
	power := o.power(r)
	if power == 0 {
		return nil
	}
	var times *duration.Model
	var unit string
	var err error
	if r.Cost == nil {
		times, err = o.times.Of(ctx, r.Encoding, r.Problem)
	} else {
		unit = r.Cost.Metric
		times, err = o.times.OfCosts(ctx, r.Encoding, r.Problem)
	}
	if err != nil { // too few have ended, or the request must be answered at once
		return nil
	}
	return &loop.Cost{Times: times, Power: power, Unit: unit}
}

// power returns the power of the expected time. CostCooled's falls with the share that is left: of the time in a study with a
// budget of time, otherwise of the trials after the initial design, or of the cost if that budget has less left or is the only one.
func (o proposer) power(r *optimizer.Request) float64 {
	cost := o.options.Cost
	if cost == CostAuto && r.Time != nil && slices.ContainsFunc(r.Earlier, func(e optimizer.Earlier) bool { return len(e.Seconds) > 0 }) {
		cost = CostCooled
	}
	switch cost {
	case CostPerSecond:
		return 1
	case CostCooled:
		left := 1.
		t, c := r.Time, r.Cost
		if t == nil && (c == nil || c.Budget == 0) {
			left = float64(r.MaxTrials-len(r.Observations)) / float64(max(1, r.MaxTrials-o.initial(r)))
		}
		if t != nil {
			left = t.Left / t.Budget
		}
		if c != nil && c.Budget > 0 {
			left = min(left, c.Left/c.Budget)
		}
		return min(1, max(0, left))
	}
	return 0
}
