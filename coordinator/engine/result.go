package engine

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// finished applies a result. Every result gets exactly one receipt. A result that
// changes nothing becomes a dead letter, unless it repeats one that was applied.
//
// The first valid answer (a value, or infeasible) ends its trial, whatever attempt it
// comes from. Other outcomes only count for the open attempt, from the worker that
// claimed it.
func (e *Engine) finished(r *messaging.Result) {
	t, a := e.trials.find(r.AttemptID)
	if t == nil {
		e.bury(r, messaging.Unknown, "the leader knows no such attempt")
		return
	}
	as := interpret(&e.spec.Definition.Spec, r)
	switch {
	case e.spec.on(safetyDuplicate) && Repeated(&e.spec.Definition.Spec, &t.rec, r):
		e.step.out.receipt(r, messaging.Duplicate)
	case t.rec.State.Terminal() && e.spec.on(safetyTerminal):
		e.bury(r, messaging.Late, fmt.Sprintf("trial %d has ended: %s", t.rec.Number, t.rec.State))
	case as.outcome == messaging.OutcomeCompleted || as.outcome == messaging.OutcomeInfeasible:
		e.step.out.receipt(r, messaging.Folded)
		e.answer(t, a, r, as)
	case a.State != study.AttemptOpen && e.spec.on(safetyDuplicate):
		e.bury(r, messaging.Late, fmt.Sprintf("attempt %d has ended: %s", a.Number, a.State))
	case a.Worker != "" && a.Worker != r.Worker:
		e.bury(r, messaging.Late, fmt.Sprintf("attempt %d was claimed by worker %s", a.Number, a.Worker))
	case as.outcome == messaging.OutcomePruned && t.rec.Stopped != nil:
		e.step.out.receipt(r, messaging.Folded)
		e.stopped(t, a, r, as)
	default:
		e.step.out.receipt(r, messaging.Folded)
		e.setback(t, a, r, as)
	}
}

// Repeated reports whether a result has already ended its attempt. A worker sends a
// result again if its receipt was lost.
func Repeated(spec *study.Spec, t *record.Trial, r *messaging.Result) bool {
	if r.Attempt < 1 || r.Attempt > len(t.Attempts) {
		return false
	}
	a := &t.Attempts[r.Attempt-1]
	return a.State != study.AttemptOpen && a.Nonce == r.Nonce && a.Worker == r.Worker && a.Outcome == interpret(spec, r).outcome
}

// interpreted is what a result is taken as. Its outcome is a known one; if that is completed, the
// result has a finite value for each objective.
type interpreted struct {
	outcome messaging.Outcome
	failure *messaging.Failure
}

// unreadable is the reason of a failure caused by an invalid result.
const unreadable = "unreadable result"

// interpret validates a result of a study. A failure beside a completed evaluation is a warning,
// which is stored and changes nothing else. A completed evaluation without a finite
// value has diverged: its outcome becomes infeasible, which is an answer. An unknown
// outcome or a wrong number of values becomes a failure.
func interpret(spec *study.Spec, r *messaging.Result) interpreted {
	failure := r.Failure
	if failure != nil && len(failure.Message) > messaging.MaxMessage {
		f := *failure
		f.Message = clip(f.Message)
		failure = &f
	}
	switch r.Outcome {
	case messaging.OutcomeCompleted:
		n, objectives := len(r.Values), len(spec.Objectives())
		if n > 0 && n != objectives {
			return interpreted{messaging.OutcomeFailed, &messaging.Failure{
				Reason:  unreadable,
				Message: fmt.Sprintf("got %d values, but the study has %d objectives", n, objectives),
			}}
		}
		if n > 0 && allFinite(r.Values) {
			return interpreted{messaging.OutcomeCompleted, failure} // a failure warns
		}
		if failure == nil {
			failure = &messaging.Failure{Reason: messaging.ReasonDiverged, Message: "completed without a finite value"}
		}
		return interpreted{messaging.OutcomeInfeasible, failure}
	case messaging.OutcomeFailed, messaging.OutcomeTimeout, messaging.OutcomeInfeasible,
		messaging.OutcomeHandedBack, messaging.OutcomeCancelled, messaging.OutcomePruned:
		return interpreted{r.Outcome, failure}
	default:
		return interpreted{messaging.OutcomeFailed, &messaging.Failure{
			Reason:  messaging.ReasonUnreadable,
			Message: clip(fmt.Sprintf("outcome is %q; want completed, failed, timeout, infeasible, handed-back, cancelled or pruned", r.Outcome)),
		}}
	}
}

// answer ends a trial with a value, or as infeasible. It tells any other worker that
// evaluates the trial to stop.
func (e *Engine) answer(t *trial, a *record.Attempt, r *messaging.Result, as interpreted) {
	if last := t.rec.Last(); last != a {
		e.cancelAttempt(t, last, "another attempt of the trial has answered")
	} else if a.State == study.AttemptOpen && a.Worker != "" && a.Worker != r.Worker {
		e.step.out.cancel(a.Worker, e.spec.attemptID(t, a), "another worker has answered")
	}
	e.close(t, a, r, study.AttemptSucceeded, as)
	e.workers.succeeded(r.Worker)
	e.evaluations.add(a, e.step.now)
	if as.outcome == messaging.OutcomeInfeasible {
		e.keepEarly(t, nil, r.Metrics)
		e.history.fold(t, study.TrialInfeasible)
	} else {
		t.rec.Values, t.rec.Metrics = slices.Clone(r.Values), finiteMetrics(r.Metrics)
		e.history.fold(t, study.TrialCompleted)
	}
	e.workers.avoidFailing()
}

// stopped ends a trial whose attempt was stopped early, with what it had reached.
func (e *Engine) stopped(t *trial, a *record.Attempt, r *messaging.Result, as interpreted) {
	e.close(t, a, r, study.AttemptPruned, as)
	e.workers.succeeded(r.Worker)
	e.evaluations.add(a, e.step.now)
	if len(r.Values) == len(e.spec.Definition.Spec.Objectives()) && allFinite(r.Values) {
		t.rec.Values = slices.Clone(r.Values)
	}
	e.keepEarly(t, finiteMetrics(r.Metrics), r.Metrics)
	e.pruned(t)
	e.workers.avoidFailing()
}

// setback applies a result without an answer to its open attempt.
func (e *Engine) setback(t *trial, a *record.Attempt, r *messaging.Result, as interpreted) {
	e.close(t, a, r, study.AttemptFailed, as)
	e.keepEarly(t, nil, r.Metrics)
	switch as.outcome {
	case messaging.OutcomeFailed, messaging.OutcomeTimeout:
		e.workers.failed(r.Worker)
		e.failed(t, a)
	default: // handed back, or cancelled or pruned although the leader did not ask for it
		why := string(as.outcome)
		if as.failure != nil {
			why = as.failure.Reason
		}
		e.handBack(t, a, a.Ended, why)
	}
	e.workers.avoidFailing()
}

// close ends an attempt with a result.
func (e *Engine) close(t *trial, a *record.Attempt, r *messaging.Result, s study.AttemptState, as interpreted) {
	if a.State == study.AttemptOpen && a.Worker != "" {
		e.demand.free++ // an estimate until the next heartbeat
	}
	a.State, a.Worker, a.Outcome, a.Failure = s, r.Worker, as.outcome, as.failure
	a.Logs = r.Logs
	if r.Site != nil {
		a.Site = r.Site
	}
	a.Started, a.Ended = r.Started, r.Ended
	if a.Claimed.IsZero() {
		a.Claimed, t.rec.Times.Claimed = r.Claimed, r.Claimed
	}
	if a.Ended.IsZero() {
		a.Ended = e.step.now
	}
	t.rec.Times.Started, t.rec.Times.Ended = a.Started, a.Ended
	if r.Checkpoint != "" {
		t.rec.Checkpoint = r.Checkpoint
	}
	e.step.touch(t)
}

// failed counts an attempt that failed or timed out against the trial's retries. It
// queues the next attempt, or fails the trial if no retry is left.
func (e *Engine) failed(t *trial, a *record.Attempt) {
	a.State = study.AttemptFailed
	if e.pruned(t) {
		return
	}
	kind := a.Outcome
	if kind != messaging.OutcomeTimeout {
		kind = messaging.OutcomeFailed
	}
	if countAttempts(t, a.State, kind) > e.spec.retries(a.State, kind) && e.spec.on(safetyRetries) {
		e.history.fold(t, study.TrialFailed)
		return
	}
	e.requeue(t)
}

// countAttempts counts a trial's attempts that ended in a state. A non-empty kind
// selects those that timed out, or all others; a hand-back beyond the limit counts as
// a plain failure.
func countAttempts(t *trial, s study.AttemptState, kind messaging.Outcome) int {
	n := 0
	for i := range t.rec.Attempts {
		a := &t.rec.Attempts[i]
		if a.State != s || kind != "" && (a.Outcome == messaging.OutcomeTimeout) != (kind == messaging.OutcomeTimeout) {
			continue
		}
		n++
	}
	return n
}

// cancelAttempt ends an attempt whose result is no longer wanted. It tells the worker,
// or withdraws the assignment if no worker has claimed it.
func (e *Engine) cancelAttempt(t *trial, a *record.Attempt, reason string) {
	if a == nil || a.State != study.AttemptOpen {
		return
	}
	if a.Worker != "" {
		e.step.out.cancel(a.Worker, e.spec.attemptID(t, a), reason)
	} else {
		e.step.out.Withdraw = append(e.step.out.Withdraw, e.assignment(t, a))
	}
	a.State, a.Outcome, a.Ended = study.AttemptCancelled, messaging.OutcomeCancelled, e.step.now
	e.step.touch(t)
}

// bury keeps a result that changes nothing as a dead letter, and sends its receipt.
func (e *Engine) bury(r *messaging.Result, d messaging.Disposition, reason string) {
	e.step.out.DeadLetters = append(e.step.out.DeadLetters, DeadLetter{Result: r, Reason: reason})
	if e.spec.on(safetyReceipt) {
		e.step.out.receipt(r, d)
	}
}

// finiteMetrics copies the metrics with finite values; nil if there are none.
func finiteMetrics(metrics map[string]float64) map[string]float64 {
	m := maps.Clone(metrics)
	maps.DeleteFunc(m, func(_ string, v float64) bool { return !finite(v) })
	if len(m) == 0 {
		return nil
	}
	return m
}

// clip cuts a message to at most messaging.MaxMessage bytes, between characters.
func clip(s string) string {
	if len(s) <= messaging.MaxMessage {
		return s
	}
	n := messaging.MaxMessage
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// cancelOpen cancels every open trial.
func (e *Engine) cancelOpen(reason string) {
	e.trials.wishes = nil
	for _, t := range slices.Clone(e.trials.open) {
		e.cancelAttempt(t, t.rec.Last(), reason)
		t.rec.Times.Ended = e.step.now
		e.history.fold(t, study.TrialCancelled)
	}
}
