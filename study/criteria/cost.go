package criteria

import (
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// Cost checks the metric that says what trials cost, and the budget of that cost.
func Cost(spec *study.Spec, found *check.Problems) {
	const path, budget = "spec.cost.metric", "spec.budget.maxCost"
	if c := spec.Cost; c != nil {
		checkMetric(found, path, c.Metric, "name the metric that says what a trial has cost so far, such as dollars")
		found.AddIf(c.Metric != "" && len(spec.Several) == 0 && c.Metric == spec.Objective.Metric, path,
			"%q is the study's only objective: name another metric, or write both as objectives", c.Metric)
	}
	most := spec.Budget.MaxCost
	switch given := most != 0 || found.Places[budget] != (check.Place{}); {
	case !given:
	case !(most > 0) || !study.Finite(most):
		found.Add(budget, "%v is not accepted; want a finite number above 0", most)
	case spec.Cost == nil:
		found.Add(budget, "needs spec.cost: name the metric in which it is counted, as in cost: {metric: dollars}")
	}
}
