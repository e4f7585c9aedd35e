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

// finished applies a result. Every result gets exactly one receipt; one that
// changes nothing is archived, unless the same was applied before.
//
// An answer (a value, or infeasible) ends its trial whichever attempt it is of:
// the first valid one wins. Anything else only counts for the attempt that is
// open, from the worker that has claimed it.
func (e *Engine) finished(r *messaging.Result) {
	t, a := e.find(r.AttemptID)
	if t == nil {
		e.archive(r, messaging.Unknown, "the leader knows no such attempt")
		return
	}
	read := interpret(&e.spec.Definition.Spec, r)
	switch {
	case e.on(guardDuplicate) && Repeated(&e.spec.Definition.Spec, &t.rec, r):
		e.receipt(r, messaging.Duplicate)
	case t.rec.State.Terminal() && e.on(guardTerminal):
		e.archive(r, messaging.Late, fmt.Sprintf("trial %d has ended: %s", t.rec.Number, t.rec.State))
	case read.outcome == messaging.OutcomeCompleted || read.outcome == messaging.OutcomeInfeasible:
		e.receipt(r, messaging.Folded)
		e.answer(t, a, r, read)
	case a.State != study.AttemptOpen && e.on(guardDuplicate):
		e.archive(r, messaging.Late, fmt.Sprintf("attempt %d has ended: %s", a.Number, a.State))
	case a.Worker != "" && a.Worker != r.Worker:
		e.archive(r, messaging.Late, fmt.Sprintf("worker %s has claimed attempt %d", a.Worker, a.Number))
	default:
		e.receipt(r, messaging.Folded)
		e.setback(t, a, r, read)
	}
}

// Repeated reports whether a result is the one that ended its attempt of a trial,
// sent again because its receipt was lost.
func Repeated(spec *study.Spec, t *record.Trial, r *messaging.Result) bool {
	if r.Attempt < 1 || r.Attempt > len(t.Attempts) {
		return false
	}
	a := &t.Attempts[r.Attempt-1]
	return a.State != study.AttemptOpen && a.Nonce == r.Nonce && a.Worker == r.Worker && a.Outcome == interpret(spec, r).outcome
}

// reading is what a result says, made safe: an outcome that is known, and where
// it is completed a finite value for each objective.
type reading struct {
	outcome messaging.Outcome
	failure *messaging.Failure
}

// unreadable is the reason of a failure that is the result's own.
const unreadable = "unreadable result"

// interpret reads a result of a study. A completed
// evaluation without a finite value has diverged: infeasible, which is an answer.
// An unknown outcome, or another number of values, is a failure.
func interpret(spec *study.Spec, r *messaging.Result) reading {
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
			return reading{messaging.OutcomeFailed, &messaging.Failure{
				Reason:  unreadable,
				Message: fmt.Sprintf("%d values, the study has %d objectives", n, objectives),
			}}
		}
		if n > 0 && allFinite(r.Values) {
			return reading{messaging.OutcomeCompleted, nil}
		}
		if failure == nil {
			failure = &messaging.Failure{Reason: messaging.ReasonDiverged, Message: "completed without a finite value"}
		}
		return reading{messaging.OutcomeInfeasible, failure}
	case messaging.OutcomeFailed, messaging.OutcomeTimeout, messaging.OutcomeInfeasible,
		messaging.OutcomeHandedBack, messaging.OutcomeCancelled:
		return reading{r.Outcome, failure}
	default:
		return reading{messaging.OutcomeFailed, &messaging.Failure{
			Reason:  messaging.ReasonUnreadable,
			Message: clip(fmt.Sprintf("outcome %q is none of completed, failed, timeout, infeasible, handed-back, cancelled", r.Outcome)),
		}}
	}
}

// answer ends a trial with a value, or as infeasible. Whoever else holds one of
// its attempts is told to stop.
func (e *Engine) answer(t *trial, a *record.Attempt, r *messaging.Result, read reading) {
	if last := t.rec.Last(); last != a {
		e.cancelAttempt(t, last, "another attempt of the trial has answered")
	} else if a.State == study.AttemptOpen && a.Worker != "" && a.Worker != r.Worker {
		e.cancelWorker(a.Worker, e.attemptID(t, a), "another worker has answered")
	}
	e.close(t, a, r, study.AttemptSucceeded, read)
	e.workers.succeeded(r.Worker)
	e.evaluations.add(a.Started, a.Ended)
	if read.outcome == messaging.OutcomeInfeasible {
		e.endTrial(t, study.TrialInfeasible)
	} else {
		t.rec.Values, t.rec.Metrics = slices.Clone(r.Values), finiteMetrics(r.Metrics)
		e.endTrial(t, study.TrialCompleted)
	}
	e.avoidFailing()
}

// setback applies a result that holds no answer to the open attempt it is of.
func (e *Engine) setback(t *trial, a *record.Attempt, r *messaging.Result, read reading) {
	e.close(t, a, r, study.AttemptFailed, read)
	switch read.outcome {
	case messaging.OutcomeFailed, messaging.OutcomeTimeout:
		e.workers.failed(r.Worker)
		e.failed(t, a)
	default: // handed back; or cancelled, though nobody here asked for it
		why := string(read.outcome)
		if read.failure != nil {
			why = read.failure.Reason
		}
		e.handBack(t, a, a.Ended, why)
	}
	e.avoidFailing()
}

// close ends an attempt by a result.
func (e *Engine) close(t *trial, a *record.Attempt, r *messaging.Result, s study.AttemptState, read reading) {
	if a.State == study.AttemptOpen && a.Worker != "" {
		e.demand.free++ // its slot: the next heartbeat counts for real
	}
	a.State, a.Worker, a.Outcome, a.Failure = s, r.Worker, read.outcome, read.failure
	a.Logs = r.Logs
	a.Started, a.Ended = r.Started, r.Ended
	if a.Claimed.IsZero() {
		a.Claimed, t.rec.Times.Claimed = r.Claimed, r.Claimed
	}
	if a.Ended.IsZero() {
		a.Ended = e.now
	}
	t.rec.Times.Started, t.rec.Times.Ended = a.Started, a.Ended
	if r.Checkpoint != "" {
		t.rec.Checkpoint = r.Checkpoint
	}
	e.touch(t)
}

// failed counts an attempt that failed or timed out against the trial's
// retries: the next attempt, or the end of the trial.
func (e *Engine) failed(t *trial, a *record.Attempt) {
	a.State = study.AttemptFailed
	kind := a.Outcome
	if kind != messaging.OutcomeTimeout {
		kind = messaging.OutcomeFailed
	}
	if countAttempts(t, a.State, kind) > e.retries(a.State, kind) && e.on(guardRetries) {
		e.endTrial(t, study.TrialFailed)
		return
	}
	e.requeue(t)
}

// retries is how many attempts may end in a state and outcome before their
// trial fails.
func (e *Engine) retries(s study.AttemptState, kind messaging.Outcome) int {
	r := e.spec.Definition.Spec.Trial.Retries
	limit, fallback := r.Failed, 0
	switch {
	case s == study.AttemptLost:
		limit, fallback = r.Lost, study.DefaultRetriesLost
	case kind == messaging.OutcomeTimeout:
		limit = r.Timeout
	}
	if limit == nil {
		return fallback
	}
	return *limit
}

// countAttempts counts a trial's attempts that ended in a state; of failed ones
// those of a kind, where a hand-back past the limit is a plain failure.
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

// cancelAttempt ends an attempt whose result is wanted no more: its worker is
// told, or its assignment is withdrawn where nobody has claimed it.
func (e *Engine) cancelAttempt(t *trial, a *record.Attempt, reason string) {
	if a == nil || a.State != study.AttemptOpen {
		return
	}
	if a.Worker != "" {
		e.cancelWorker(a.Worker, e.attemptID(t, a), reason)
	} else {
		e.out.Withdraw = append(e.out.Withdraw, e.assignment(t, a))
	}
	a.State, a.Outcome, a.Ended = study.AttemptCancelled, messaging.OutcomeCancelled, e.now
	e.touch(t)
}

// receipt says what became of a result.
func (e *Engine) receipt(r *messaging.Result, d messaging.Disposition) {
	e.out.Receipts = append(e.out.Receipts, Receipt{Worker: r.Worker, Attempt: r.AttemptID, Disposition: d})
}

// archive keeps a result that changes nothing, and receipts it.
func (e *Engine) archive(r *messaging.Result, d messaging.Disposition, reason string) {
	e.out.Archives = append(e.out.Archives, Archive{Result: r, Reason: reason})
	if e.on(guardReceipt) {
		e.receipt(r, d)
	}
}

// finiteMetrics copies the metrics that are numbers; nil where there are none.
func finiteMetrics(metrics map[string]float64) map[string]float64 {
	m := maps.Clone(metrics)
	maps.DeleteFunc(m, func(_ string, v float64) bool { return !finite(v) })
	if len(m) == 0 {
		return nil
	}
	return m
}

// clip bounds a message for people at messaging.MaxMessage bytes, at the start
// of a character.
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
	for _, t := range slices.Clone(e.open) {
		e.cancelAttempt(t, t.rec.Last(), reason)
		t.rec.Times.Ended = e.now
		e.endTrial(t, study.TrialCancelled)
	}
}
