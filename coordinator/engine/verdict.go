package engine

import (
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/study"
)

// endIfDue ends the study as soon as its specification says so.
func (e *Engine) endIfDue() {
	if !e.running() {
		return
	}
	e.suggestions.exhaustion.reconsider(e.history.observations.all)
	if state, reason := e.verdict(); state.Terminal() {
		e.end(state, reason)
	}
}

// verdict returns the state that the specification gives the study after its trials so far, and
// why; study.Running means that it continues. The order decides between reasons that hold at once:
// a study that has reached its goal is completed, even if that took its whole budget.
//
// A trial that runs another one to its end may be beyond maxTrials, and the study waits for it.
func (e *Engine) verdict() (study.State, string) { return e.verdictIf(e.users.finishing) }

// verdictIf is verdict, with what it assumes of such a trial: whether one is open.
func (e *Engine) verdictIf(finishing func() bool) (study.State, string) {
	spec, c := &e.spec.Definition.Spec, e.trials.counts
	switch {
	case e.history.reached() != "":
		return study.Completed, e.history.reached()
	case e.trials.failedAtFirst():
		return study.Failed, e.failed(fmt.Sprintf("the first %d trials all failed", firstFailures))
	case spec.Budget.MaxFailedTrials > 0 && c.Failed-e.trials.forgiven >= spec.Budget.MaxFailedTrials:
		return study.Failed, e.failed(fmt.Sprintf("%d trials failed (maxFailedTrials)", c.Failed-e.trials.forgiven))
	case spec.Budget.MaxTrials > 0 && c.Ended() >= spec.Budget.MaxTrials && e.spec.on(safetyBudget) && !finishing():
		return e.spent(fmt.Sprintf("all %d trials have ended (maxTrials)", spec.Budget.MaxTrials))
	case e.history.worthless() != "":
		return e.spent(e.history.worthless())
	case e.trials.affordable() == 0 && e.trials.active() == 0:
		return e.spent(fmt.Sprintf("%.6g of %.6g %s are spent (maxCost)", e.trials.spending.spent, spec.Budget.MaxCost, spec.Cost.Metric))
	case e.trials.unpriced():
		return study.Failed, fmt.Sprintf("none of the %d trials that have ended has reported %s (cost.metric), so nothing counts against "+
			"maxCost: make the program report it, or leave maxCost out", e.trials.spending.silent, spec.Cost.Metric)
	case e.life.expired():
		return e.spent(fmt.Sprintf("the study has run for %s (maxDuration)", time.Duration(spec.Budget.MaxDuration)))
	case !e.suggestions.exhaustion.over || len(e.trials.open) > 0 || finishing() || e.promotion.possible():
		return study.Running, ""
	case e.suggestions.exhaustion.late:
		return e.spent(fmt.Sprintf("no other trial is expected to end in the %s that are left of %s (maxDuration)",
			e.life.left().Round(time.Second), time.Duration(spec.Budget.MaxDuration)))
	case e.suggestions.exhaustion.infeasible != nil:
		return study.Failed, e.suggestions.exhaustion.infeasible.Error()
	case e.suggestions.exhaustion.unproved:
		return e.spent("no other point that meets the constraints was found, and all that were found have been evaluated")
	default:
		return e.spent("the search space is exhausted: every point has been evaluated")
	}
}

// failed returns the reason of an end by failures. It names the way out before the last failure's words, which
// can be many.
func (e *Engine) failed(how string) string {
	return fmt.Sprintf("%s; once the cause is mended, fantasia study resume %s continues it; the last one: %s",
		how, e.spec.Definition.Metadata.Name, e.trials.lastWords())
}

// spent returns the verdict when there is nothing left to evaluate: completed if a trial has
// completed.
func (e *Engine) spent(how string) (study.State, string) {
	if e.trials.counts.Completed > 0 {
		status := e.Status()
		if unmet := status.Unmet(&e.spec.Definition.Spec); unmet != "" {
			how += "; " + unmet
		}
		return study.Completed, how
	}
	if e.trials.counts.Failed > 0 {
		return study.Failed, how + " and nothing completed; the last failure: " + e.trials.lastWords()
	}
	return study.Failed, how + " and nothing completed"
}

// end moves the study to a terminal state and cancels what is open. What this step wanted to send
// or ask for is dropped: nobody has it yet.
func (e *Engine) end(state study.State, reason string) {
	e.life.end(state, reason)
	e.attempts.cancelOpen("the study has ended: " + string(state))
	e.suggestions.end()
	e.judging.end()
	e.outbox.end()
	e.demand.end()
	e.seekers = nil
}
