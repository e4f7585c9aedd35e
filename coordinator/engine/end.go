package engine

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/study"
)

// settle ends the study if its specification says so.
func (e *Engine) settle() {
	if !e.running() {
		return
	}
	if state, reason := e.verdict(); state.Terminal() {
		e.end(state, reason)
	}
}

// verdict returns the state that the specification gives the study after its trials
// so far, and why; study.Running means that it continues.
func (e *Engine) verdict() (study.State, string) {
	spec, c := &e.spec.Definition.Spec, e.status.Counts
	goal := spec.FirstObjective().Goal
	switch {
	case goal != nil && e.best != nil && !e.spec.direction().Better(*goal, e.best.facts().value):
		return study.Completed, fmt.Sprintf("trial %d reached the goal: %g", e.best.facts().number, e.best.facts().value)
	case e.frontReached() != "":
		return study.Completed, e.frontReached()
	case e.failedAtFirst():
		return study.Failed, fmt.Sprintf("the first %d trials all failed; the last one: %s", firstFailures, e.lastWords())
	case spec.Budget.MaxFailedTrials > 0 && c.Failed >= spec.Budget.MaxFailedTrials:
		return study.Failed, fmt.Sprintf("%d trials failed (maxFailedTrials); the last one: %s", c.Failed, e.lastWords())
	case c.Ended() >= spec.Budget.MaxTrials && e.spec.on(safetyBudget):
		return e.spent(fmt.Sprintf("all %d trials have ended (maxTrials)", spec.Budget.MaxTrials))
	case e.expired():
		return e.spent(fmt.Sprintf("the study has run for %s (maxDuration)", time.Duration(spec.Budget.MaxDuration)))
	case e.demand.infeasible != nil && len(e.open) == 0 && !e.promotes():
		return study.Failed, e.demand.infeasible.Error()
	case e.demand.exhausted && e.demand.unproved && len(e.open) == 0 && !e.promotes():
		return e.spent("no other point that meets the constraints was found, and all that were found have been evaluated")
	case e.demand.exhausted && len(e.open) == 0 && !e.promotes():
		return e.spent("the search space is exhausted: every point has been evaluated")
	default:
		return study.Running, ""
	}
}

// spent returns the verdict when the budget is used up.
func (e *Engine) spent(how string) (study.State, string) {
	if e.status.Counts.Completed > 0 {
		if unmet := e.status.Unmet(&e.spec.Definition.Spec); unmet != "" {
			how += "; " + unmet
		}
		return study.Completed, how
	}
	if e.status.Counts.Failed > 0 {
		return study.Failed, how + " and nothing completed; the last failure: " + e.lastWords()
	}
	return study.Failed, how + " and nothing completed"
}

// lastWords returns the message of the failed trial that ended last.
func (e *Engine) lastWords() string {
	if t := e.lastFailed(); t != nil {
		if a := t.look().Last(); a != nil && a.Failure != nil {
			if a.Failure.Message != "" {
				return a.Failure.Message
			}
			return a.Failure.Reason
		}
	}
	return "no message"
}

// # How long a study has run
//
// A leader adds up for how long it has run a study, and stores the sum with the status. It
// compares only times of its own clock, which go on steadily even if the clock is set. So
// neither another leader's clock nor the time without a leader counts.

// ran returns for how long the study has run.
func (e *Engine) ran() time.Duration {
	if !e.running() {
		return e.status.Ran
	}
	return e.status.Ran + max(0, e.step.now.Sub(e.since))
}

// countRan brings the status up to date.
func (e *Engine) countRan() {
	e.status.Ran, e.since = e.ran(), e.step.now
}

// countAgain returns when the time that the study has run should be stored; zero for never.
// It matters only to studies with a maxDuration.
func (e *Engine) countAgain() time.Time {
	if e.spec.Definition.Spec.Budget.MaxDuration <= 0 {
		return time.Time{}
	}
	return e.since.Add(countRanEvery)
}

// deadline returns when maxDuration ends the study; zero for never.
func (e *Engine) deadline() time.Time {
	d := time.Duration(e.spec.Definition.Spec.Budget.MaxDuration)
	if d <= 0 {
		return time.Time{}
	}
	return e.step.now.Add(d - e.ran())
}

// expired reports whether maxDuration has passed. It returns false until a loaded
// study is opened, so that the study first gets the results that arrived while
// nobody led.
func (e *Engine) expired() bool {
	d := e.deadline()
	return !d.IsZero() && !e.step.now.Before(d) && !e.held
}

// end moves the study to a terminal state and cancels what is open.
func (e *Engine) end(state study.State, reason string) {
	e.countRan()
	e.status.State, e.status.Reason, e.status.Ended = state, clip(reason), e.step.now
	e.step.changed.status = true
	e.cancelOpen("the study has ended: " + string(state))
	if e.step.out.Ask != nil { // made in this step: nobody has it yet
		e.step.out.Ask, e.demand.ask = nil, nil
	}
	if e.step.out.Fallback != nil {
		e.step.out.Fallback, e.demand.fallback = nil, nil
	}
	e.step.out.Publish = nil
	e.demand.forget()
	e.pending, e.outbox, e.seekers = nil, nil, nil
}

// stop ends the study at a user's request.
func (e *Engine) stop(reason string) {
	if !e.running() {
		return
	}
	e.end(study.Stopped, cmp.Or(reason, "stopped"))
}
