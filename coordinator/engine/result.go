package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// results applies the results of attempts, from workers and from clients.
//
// Every result gets exactly one receipt, and changes at most one trial, once: when it comes again, the trial
// is as the first one left it. The first valid answer ends its trial. It may come from an earlier attempt,
// since a finished evaluation should not be wasted. Any other outcome counts only for the open attempt, and
// only from the worker that claimed it.
type results struct {
	shared
	history     *history
	attempts    *attempts
	pruning     *pruning
	health      *health
	slots       *slots
	evaluations *durations
}

// finished applies a result: see results. Its cases ask, in this order: Was it applied before? Has the trial
// ended? Is it an answer? Does it come from the worker that holds the attempt? A result that changes nothing
// becomes a dead letter, unless it repeats one that was applied.
func (l *results) finished(r *messaging.Result) {
	t, a := l.trials.find(r.AttemptID)
	if t == nil {
		l.bury(r, messaging.Unknown, "the leader knows no such attempt")
		return
	}
	as := interpret(&l.spec.Definition.Spec, r)
	switch {
	case l.spec.on(safetyDuplicate) && Repeated(&l.spec.Definition.Spec, &t.rec, r):
		l.step.out.receipt(r, messaging.Duplicate)
	case t.rec.State.Terminal() && l.spec.on(safetyTerminal):
		l.bury(r, messaging.Late, fmt.Sprintf("trial %d has ended: %s", t.rec.Number, t.rec.State))
	case as.outcome == messaging.OutcomeCompleted || as.outcome == messaging.OutcomeInfeasible:
		l.step.out.receipt(r, messaging.Folded)
		l.answer(t, a, r, as)
	case a.State != study.AttemptOpen && l.spec.on(safetyDuplicate):
		l.bury(r, messaging.Late, fmt.Sprintf("attempt %d has ended: %s", a.Number, a.State))
	case a.Worker != "" && a.Worker != r.Worker:
		l.bury(r, messaging.Late, fmt.Sprintf("attempt %d was claimed by worker %s", a.Number, a.Worker))
	case as.outcome == messaging.OutcomePruned && t.rec.Stopped != nil:
		l.step.out.receipt(r, messaging.Folded)
		if l.ranToItsEnd(r) {
			l.answer(t, a, r, as)
		} else {
			l.stopped(t, a, r, as)
		}
	default:
		l.step.out.receipt(r, messaging.Folded)
		l.setback(t, a, r, as)
	}
}

// answer ends a trial with a value, or as infeasible. It tells any other worker that
// evaluates the trial to stop.
func (l *results) answer(t *trial, a *record.Attempt, r *messaging.Result, as interpreted) {
	if last := t.rec.Last(); last != a {
		l.attempts.cancel(t, last, "another attempt of the trial has answered")
	} else if a.State == study.AttemptOpen && a.Worker != "" && a.Worker != r.Worker {
		l.step.out.cancel(a.Worker, l.spec.attemptID(t, a), "another worker has answered")
	}
	l.close(t, a, r, study.AttemptSucceeded, as)
	l.health.succeeded(r.Worker)
	l.evaluations.add(a, l.step.now)
	if as.outcome == messaging.OutcomeInfeasible {
		l.pruning.keepEarly(t, nil, r.Metrics)
		l.history.fold(t, study.TrialInfeasible)
	} else {
		t.rec.Values, t.rec.Metrics = slices.Clone(r.Values), finiteMetrics(r.Metrics)
		l.history.fold(t, study.TrialCompleted)
	}
	l.health.avoidFailing()
}

// ranToItsEnd reports whether a trial that was told to stop had reported everything by then: the
// message to stop came while its program only had to exit. Stopping it saved nothing, so the
// trial is completed, as if nobody had stopped it.
func (l *results) ranToItsEnd(r *messaging.Result) bool {
	spec := &l.spec.Definition.Spec
	return len(r.Values) == len(spec.Objectives()) && study.Finite(r.Values...) &&
		!slices.ContainsFunc(spec.Excess(r.Values, r.Metrics), math.IsNaN) && l.pruning.rule.ended(r.Reached)
}

// stopped ends a trial whose attempt was stopped early as it was told. What the worker has reached
// by then counts, rather than what it had when the decision was made.
func (l *results) stopped(t *trial, a *record.Attempt, r *messaging.Result, as interpreted) {
	l.close(t, a, r, study.AttemptPruned, as)
	l.health.succeeded(r.Worker)
	l.evaluations.add(a, l.step.now)
	if len(r.Values) == len(l.spec.Definition.Spec.Objectives()) && study.Finite(r.Values...) {
		t.rec.Values = slices.Clone(r.Values)
	}
	l.pruning.keepEarly(t, finiteMetrics(r.Metrics), r.Metrics)
	l.pruning.pruned(t)
	l.health.avoidFailing()
}

// setback applies a result without an answer to its open attempt. Only failures and timeouts count
// against the worker and the retries.
func (l *results) setback(t *trial, a *record.Attempt, r *messaging.Result, as interpreted) {
	l.close(t, a, r, study.AttemptFailed, as)
	l.pruning.keepEarly(t, nil, r.Metrics)
	l.pruning.keepReached(t, r)
	switch as.outcome {
	case messaging.OutcomeFailed, messaging.OutcomeTimeout:
		l.health.failed(r.Worker)
		l.attempts.failed(t, a)
	default: // handed back, or cancelled or pruned although the leader did not ask for it
		why := string(as.outcome)
		if as.failure != nil {
			why = as.failure.Reason
		}
		l.attempts.handBack(t, a, a.Ended, why)
	}
	l.health.avoidFailing()
}

// close ends an attempt as its result says. It takes the worker's times, because they are only compared with
// each other.
func (l *results) close(t *trial, a *record.Attempt, r *messaging.Result, s study.AttemptState, as interpreted) {
	if a.State == study.AttemptOpen && a.Worker != "" {
		l.slots.release() // an estimate until the next heartbeat
	}
	l.trials.noteCost(t)
	l.trials.note(a, r.Metrics)
	completed := s == study.AttemptSucceeded && as.outcome != messaging.OutcomeInfeasible
	a.State, a.Worker, a.Outcome, a.Failure = s, r.Worker, as.outcome, l.withCost(t, a, r, as.failure, completed)
	a.Logs = r.Logs
	if r.Site != nil {
		a.Site = r.Site
	}
	a.Started, a.Ended, a.Stages = r.Started, r.Ended, r.Stages
	if a.Claimed.IsZero() {
		a.Claimed, t.rec.Times.Claimed = r.Claimed, r.Claimed
	}
	if a.Ended.IsZero() {
		a.Ended = l.step.now
	}
	t.rec.Times.Started, t.rec.Times.Ended = a.Started, a.Ended
	if r.Checkpoint != "" {
		t.rec.Checkpoint = r.Checkpoint
	}
	l.step.touch(t)
}

// bury keeps a result that changes nothing as a dead letter, so that people can see it. It is
// answered too: the worker would send it forever.
func (l *results) bury(r *messaging.Result, d messaging.Disposition, reason string) {
	l.step.out.DeadLetters = append(l.step.out.DeadLetters, DeadLetter{Result: r, Reason: reason})
	if l.spec.on(safetyReceipt) {
		l.step.out.receipt(r, d)
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
		if n > 0 && study.Finite(r.Values...) {
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

// finiteMetrics copies the metrics with finite values; nil if there are none.
func finiteMetrics(metrics map[string]float64) map[string]float64 {
	m := maps.Clone(metrics)
	maps.DeleteFunc(m, func(_ string, v float64) bool { return !study.Finite(v) })
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
