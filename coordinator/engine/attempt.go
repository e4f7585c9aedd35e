package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// attempts hands out trials: it opens their attempts, and ends those that have brought no answer.
//
// A trial has at most one open attempt, its last one, and it has one exactly while it is QUEUED,
// CLAIMED or RUNNING. When an attempt ends without an answer, its trial waits for the next attempt. It
// ends instead if it was told to stop early, or if its limit is used up. Each way in which an attempt can
// end has a limit, because a trial must not go on forever.
type attempts struct {
	shared
	history *history
	pruning *pruning
	outbox  *outbox
	slots   *slots
	seekers *seekers

	// occupied holds, by attempt number, the highest trial whose claim's place another message had
	// taken before the attempt was opened. It is in the status, and not changed in place, since
	// snapshots share it.
	occupied map[int]int
}

// load takes over what the last leader has stored.
func (l *attempts) load(s *record.Status) { l.occupied = s.Occupied }

// write is the reverse of load.
func (l *attempts) write(s *record.Status) { s.Occupied = l.occupied }

// open hands out a pending trial: it opens its next attempt and publishes it, or gives it to a
// client. An attempt whose claim's place is taken already is skipped, as if it had been tried; if
// that uses up the limit, the trial fails.
func (l *attempts) open(t *trial) {
	if !l.spec.byClients() { // clients tell the values of their trials themselves
		t.rec.Reached = l.pruning.reachedBy(t)
	}
	for {
		t.shorten()
		t.rec.Attempts = append(t.rec.Attempts, record.Attempt{
			Number: len(t.rec.Attempts) + 1,
			Nonce:  l.spec.ids.Nonce(),
			State:  study.AttemptOpen,
			Opened: l.step.now,
		})
		// The trial's times are those of its current attempt.
		t.rec.Times.Claimed, t.rec.Times.Started, t.rec.Times.Ended = time.Time{}, time.Time{}, time.Time{}
		l.trials.setState(t, study.TrialQueued)
		a := t.rec.Last()
		if l.spec.byClients() {
			l.giveToSeeker(t)
			return
		}
		if !l.isOccupied(t, a.Number) {
			l.outbox.publish(t)
			return
		}
		if !l.forfeit(t, a) {
			return
		}
	}
}

// giveToSeeker gives a trial's new attempt to the client that has waited longest. It is claimed and
// running in the record that opens it, so nothing has to be published, and a leader that dies
// leaves no attempt without a holder.
func (l *attempts) giveToSeeker(t *trial) {
	a := t.rec.Last()
	a.Worker, a.Claimed, a.Started = l.seekers.next(), l.step.now, l.step.now
	t.claimed = l.step.now
	t.rec.Times.Claimed, t.rec.Times.Started = l.step.now, l.step.now
	l.trials.setState(t, study.TrialRunning)
}

// handOut gives free slots to trials that exist already: those that wait for another attempt,
// longest waiting first, then those that users have enqueued. Parallelism and a budget of cost bound
// only the latter: the former have been counted since their first attempt.
func (l *attempts) handOut() {
	for l.slots.vacant() > 0 {
		t := l.trials.next()
		if t == nil {
			break
		}
		l.open(t)
	}
	for l.slots.vacant() > 0 && (l.trials.vacancies() > 0 || !l.spec.on(safetyParallel)) && l.trials.affordable() > 0 {
		t := l.trials.nextWish()
		if t == nil {
			break
		}
		l.open(t)
	}
}

// requeue makes a trial wait for its next attempt. It fails instead if the ledger could not hold
// that attempt's result.
func (l *attempts) requeue(t *trial) {
	if !l.filled(t) {
		l.trials.wait(t)
	}
}

// filled fails a trial whose record is full, and reports whether it was. Else the commit of the
// next result would fail, and with it the study's leader.
func (l *attempts) filled(t *trial) bool {
	if !t.full() {
		return false
	}
	t.rec.Last().Failure = &messaging.Failure{
		Reason:  messaging.ReasonAttempts,
		Message: fmt.Sprintf("the trial's record has no room for attempt %d", len(t.rec.Attempts)+1),
	}
	t.rec.Times.Ended = l.step.now
	l.history.fold(t, study.TrialFailed)
	return true
}

// forfeit ends an open attempt that no worker can claim. It returns false if the trial may not have
// another attempt. The limit is the one for hand-backs: without it, a sender that spoils every claim would
// keep the trial going forever.
func (l *attempts) forfeit(t *trial, a *record.Attempt) bool {
	a.State, a.Outcome, a.Ended = study.AttemptCancelled, messaging.OutcomeCancelled, l.step.now
	if l.pruning.pruned(t) {
		return false
	}
	n := countAttempts(t, study.AttemptCancelled, "")
	if n <= study.MaxHandBacks || !l.spec.on(safetyRetries) {
		return !l.filled(t)
	}
	a.Failure = &messaging.Failure{
		Reason: messaging.ReasonUnclaimable,
		Message: fmt.Sprintf("%d attempts could not be claimed (limit %d), because other messages were in their claims' places: "+
			"check the dead letters and the pool's workers", n, study.MaxHandBacks),
	}
	t.rec.Times.Ended = l.step.now
	l.history.fold(t, study.TrialFailed)
	return false
}

// handBack ends an attempt that its worker has given up, which costs the trial no retry. Beyond a
// limit it counts as failed: a worker that takes and hands back the same trial would go on forever.
func (l *attempts) handBack(t *trial, a *record.Attempt, ended time.Time, why string) {
	n := countAttempts(t, study.AttemptHandedBack, "")
	a.Ended = ended
	if n < study.MaxHandBacks || !l.spec.on(safetyRetries) {
		a.State = study.AttemptHandedBack
		if !l.pruning.pruned(t) {
			l.requeue(t)
		}
		return
	}
	a.Failure = &messaging.Failure{
		Reason:  messaging.ReasonHandBacks,
		Message: clip(fmt.Sprintf("handed back %d times (limit %d): %s", n+1, study.MaxHandBacks, why)),
	}
	l.failed(t, a)
}

// failed counts an attempt that failed or timed out against the trial's retries. It
// queues the next attempt, or fails the trial if no retry is left.
func (l *attempts) failed(t *trial, a *record.Attempt) {
	a.State = study.AttemptFailed
	if l.pruning.pruned(t) {
		return
	}
	kind := a.Outcome
	if kind != messaging.OutcomeTimeout {
		kind = messaging.OutcomeFailed
	}
	if countAttempts(t, a.State, kind) > l.spec.retries(a.State, kind) && l.spec.on(safetyRetries) {
		l.history.fold(t, study.TrialFailed)
		return
	}
	l.requeue(t)
}

// cancel ends an attempt whose result is no longer wanted. If a worker has claimed it, that worker is told.
// Otherwise the leader claims it itself (Output.Withdraw), and then no worker can begin it.
func (l *attempts) cancel(t *trial, a *record.Attempt, reason string) {
	if a == nil || a.State != study.AttemptOpen {
		return
	}
	if a.Worker != "" {
		l.step.out.cancel(a.Worker, l.spec.attemptID(t, a), reason)
	} else {
		l.step.out.Withdraw = append(l.step.out.Withdraw, l.outbox.assignment(t, a))
	}
	a.State, a.Outcome, a.Ended = study.AttemptCancelled, messaging.OutcomeCancelled, l.step.now
	l.step.touch(t)
}

// cancelOpen cancels every open trial, since the study has ended.
func (l *attempts) cancelOpen(reason string) {
	l.trials.unqueue()
	for _, t := range slices.Clone(l.trials.open) {
		l.step.restore(t)
		l.cancel(t, t.rec.Last(), reason)
		t.rec.Times.Ended = l.step.now
		l.history.fold(t, study.TrialCancelled)
	}
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
