package engine

import (
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// settle ends the study where its specification says so.
func (e *Engine) settle() {
	if !e.running() {
		return
	}
	if state, reason := e.verdict(); state.Terminal() {
		e.end(state, reason)
	}
}

// verdict is what the specification says of the trials so far: study.Running
// while the study goes on.
func (e *Engine) verdict() (study.State, string) {
	spec, c := &e.spec.Definition.Spec, e.status.Counts
	goal := spec.Objective.Goal
	switch {
	case goal != nil && e.best != nil && !e.direction().Better(*goal, e.best.rec.Values.First()):
		return study.Completed, fmt.Sprintf("trial %d reached the goal: %g", e.best.rec.Number, e.best.rec.Values.First())
	case e.failedAtFirst():
		return study.Failed, fmt.Sprintf("the first %d trials all failed; the last one: %s", firstFailures, e.lastWords())
	case spec.Budget.MaxFailedTrials > 0 && c.Failed >= spec.Budget.MaxFailedTrials:
		return study.Failed, fmt.Sprintf("%d trials failed (maxFailedTrials); the last one: %s", c.Failed, e.lastWords())
	case c.Ended() >= spec.Budget.MaxTrials && e.on(guardBudget):
		return e.spent(fmt.Sprintf("all %d trials have ended (maxTrials)", spec.Budget.MaxTrials))
	case e.expired():
		return e.spent(fmt.Sprintf("the study has run for %s (maxDuration)", time.Duration(spec.Budget.MaxDuration)))
	case e.demand.exhausted && len(e.open) == 0:
		return e.spent("the search space is exhausted: every point has been evaluated")
	default:
		return study.Running, ""
	}
}

// spent is the verdict of a budget that is used up.
func (e *Engine) spent(how string) (study.State, string) {
	if e.status.Counts.Completed > 0 {
		return study.Completed, how
	}
	if e.status.Counts.Failed > 0 {
		return study.Failed, how + " and nothing completed; the last failure: " + e.lastWords()
	}
	return study.Failed, how + " and nothing completed"
}

// lastWords is the message of the failed trial that ended last.
func (e *Engine) lastWords() string {
	if t := e.lastFailed(); t != nil {
		if a := t.rec.Last(); a != nil && a.Failure != nil {
			if a.Failure.Message != "" {
				return a.Failure.Message
			}
			return a.Failure.Reason
		}
	}
	return "no message"
}

// deadline is when maxDuration ends the study; zero for never.
func (e *Engine) deadline() time.Time {
	d := time.Duration(e.spec.Definition.Spec.Budget.MaxDuration)
	if d <= 0 {
		return time.Time{}
	}
	return e.status.Started.Add(d + e.status.Idle)
}

// expired reports whether maxDuration has passed. A loaded study is given the
// results that came while nobody led before it is asked.
func (e *Engine) expired() bool {
	d := e.deadline()
	return !d.IsZero() && !e.now.Before(d) && !e.held
}

// failedAtFirst reports whether the first trials that ended have all failed.
func (e *Engine) failedAtFirst() bool {
	if len(e.observations) < firstFailures {
		return false
	}
	for _, o := range e.observations[:firstFailures] {
		if o.Outcome != optimizer.OutcomeFailed {
			return false
		}
	}
	return true
}

// end moves the study to a terminal state and cancels what is open.
func (e *Engine) end(state study.State, reason string) {
	e.status.State, e.status.Reason, e.status.Ended = state, clip(reason), e.now
	e.dirty.status = true
	e.cancelOpen("the study has ended: " + string(state))
	if e.out.Ask != nil { // of this very step: nobody has it yet
		e.out.Ask, e.demand.ask = nil, nil
	}
	e.out.Publish = nil
	e.demand.forget()
	e.pending, e.outbox = nil, nil
}

// stop ends the study at a person's wish.
func (e *Engine) stop(reason string) {
	if !e.running() {
		return
	}
	if reason == "" {
		reason = "stopped"
	}
	e.end(study.Stopped, reason)
}

// update takes a compatible specification over. An ended study goes on where
// nothing in the new specification ends it; time that it lay ended does not
// count against maxDuration.
func (e *Engine) update(spec record.Study) {
	if err := e.setSpec(spec); err != nil {
		e.warn("the new specification was not taken: %v", err)
		return
	}
	e.dirty.spec = true
	e.demand.exhausted = false
	if e.running() {
		return
	}
	idle := e.status.Idle
	e.status.Idle += e.now.Sub(e.status.Ended)
	if state, _ := e.verdict(); state.Terminal() {
		e.status.Idle = idle
		return
	}
	e.status.State, e.status.Reason, e.status.Ended = study.Running, "", time.Time{}
	e.dirty.status = true
}

// warn adds a line to the log.
func (e *Engine) warn(format string, args ...any) {
	e.out.Warnings = append(e.out.Warnings, fmt.Sprintf(format, args...))
}
