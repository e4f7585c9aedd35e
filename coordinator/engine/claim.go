package engine

import (
	"fmt"
	"maps"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// claimed applies a claim. The first claim of an open attempt wins; workers that
// claim it later are told to stop. A claim of an unknown attempt, or with a wrong
// nonce, spoils the attempt whose claim's place it has taken.
func (e *Engine) claimed(c *messaging.Claim) {
	t, a := e.trials.find(c.AttemptID)
	switch {
	case t == nil:
		e.step.out.cancel(c.Worker, c.AttemptID, "the leader knows no such attempt")
		e.spoiled(c.AttemptID)
	case c.Worker == messaging.LeaderName:
		e.withdrawn(t, a)
	case a.State != study.AttemptOpen:
		if !endedBy(a, c.Worker) {
			e.step.out.cancel(c.Worker, c.AttemptID, fmt.Sprintf("the attempt has ended: %s", a.State))
		}
	case a.Worker == "" || !e.spec.on(safetyClaim):
		e.claim(t, a, c)
	case a.Worker != c.Worker:
		e.step.out.cancel(c.Worker, c.AttemptID, "another worker claimed the attempt first")
	}
}

// spoiled replaces an attempt that nobody can claim, because another message has
// taken the place of its claim. It does so as if the leader had withdrawn the
// attempt. If the attempt is not open yet, spoiled remembers the place until then.
func (e *Engine) spoiled(id messaging.AttemptID) {
	if id.Study != e.spec.ID || id.Trial < 1 || id.Attempt < 1 || !e.spec.on(safetySpoiled) {
		return
	}
	if id.Trial > len(e.trials.all) {
		e.occupy(id)
		return
	}
	t := e.trials.all[id.Trial-1]
	e.step.restore(t)
	switch last := t.rec.Last(); {
	case t.rec.State.Terminal():
	case id.Attempt > len(t.rec.Attempts):
		e.occupy(id)
	case id.Attempt == last.Number && last.Nonce != id.Nonce && last.State == study.AttemptOpen && last.Worker == "":
		e.step.out.warn("trial %d: attempt %d cannot be claimed: another message is in its claim's place", id.Trial, id.Attempt)
		e.withdrawn(t, last)
	}
}

// maxOccupied bounds the attempt numbers in record.Status.Occupied. A trial's record
// has no room for more attempts.
const maxOccupied = 4096

// occupy remembers that a message has taken the place of the claim of an attempt that
// is not open yet. It keeps only the highest trial for each attempt number, so that a
// worker that claims unknown attempts cannot make the record grow. The attempts with
// that number of lower trials are then skipped too, which is harmless.
func (e *Engine) occupy(id messaging.AttemptID) {
	if id.Attempt > maxOccupied || e.occupied[id.Attempt] >= id.Trial || !e.spec.on(safetyEarly) {
		return
	}
	e.step.out.warn("trial %d: another message is in the place of attempt %d's claim before it was opened", id.Trial, id.Attempt)
	occupied := maps.Clone(e.occupied) // snapshots share it
	if occupied == nil {
		occupied = map[int]int{}
	}
	occupied[id.Attempt] = id.Trial
	e.occupied = occupied
	e.step.changed.status = true
}

// occupied reports whether another message had taken the place of an attempt's claim
// before the attempt was opened.
func (e *Engine) isOccupied(t *trial, attempt int) bool {
	return e.occupied[attempt] >= t.rec.Number
}

// withdrawn applies a leader's own claim. Usually the attempt has ended already. If
// it has not, the ledger was restored to an earlier time. Then nobody else can claim
// the attempt, so the trial needs another one.
func (e *Engine) withdrawn(t *trial, a *record.Attempt) {
	if a.State == study.AttemptOpen && a.Worker == "" && e.forfeit(t, a) {
		e.trials.wait(t)
	}
}

// forfeit ends an open attempt that nobody can claim, and reports whether its trial
// may have another one. The limit is that of free hand-backs: without one, a sender
// that spoils every claim would keep the trial going forever.
func (e *Engine) forfeit(t *trial, a *record.Attempt) bool {
	a.State, a.Outcome, a.Ended = study.AttemptCancelled, messaging.OutcomeCancelled, e.step.now
	if e.pruned(t) {
		return false
	}
	n := countAttempts(t, study.AttemptCancelled, "")
	if n <= study.MaxHandBacks || !e.spec.on(safetyRetries) {
		return !e.filled(t)
	}
	a.Failure = &messaging.Failure{
		Reason: messaging.ReasonUnclaimable,
		Message: fmt.Sprintf("%d attempts could not be claimed (limit %d), because other messages were in their claims' places: "+
			"check the dead letters and the pool's workers", n, study.MaxHandBacks),
	}
	t.rec.Times.Ended = e.step.now
	e.history.fold(t, study.TrialFailed)
	return false
}

// claim gives an open attempt to the worker that claimed it first.
func (e *Engine) claim(t *trial, a *record.Attempt, c *messaging.Claim) {
	a.Worker, a.Claimed, a.Site = c.Worker, c.At, c.Site
	if a.Claimed.IsZero() {
		a.Claimed = e.step.now
	}
	t.claimed, t.rec.Times.Claimed = e.step.now, a.Claimed
	e.demand.free = max(0, e.demand.free-1)
	e.trials.setState(t, study.TrialClaimed)
	e.tellToStop(t, a)
}

// endedBy reports whether an attempt was ended by the worker's own result. Then the
// worker need not be told to stop.
func endedBy(a *record.Attempt, worker string) bool {
	return a.Worker == worker && a.Outcome != "" && a.Outcome != messaging.OutcomeCancelled
}

// alive records that an attempt's evaluation has begun. It cancels an evaluation that
// is no longer wanted.
func (e *Engine) alive(worker string, id messaging.AttemptID) {
	t, a := e.trials.find(id)
	switch {
	case t == nil:
		e.step.out.cancel(worker, id, "the leader knows no such attempt")
	case a.State != study.AttemptOpen:
		// Even if this worker ended it: the claim stream may have been lost since, and
		// the worker may have claimed the attempt again.
		e.step.out.cancel(worker, id, fmt.Sprintf("the attempt has ended: %s", a.State))
	case a.Worker == "": // the claim is in the stream but has not been read
	case a.Worker != worker:
		e.step.out.cancel(worker, id, "another worker claimed the attempt first")
	default:
		if t.rec.State == study.TrialClaimed {
			a.Started = e.step.now
			t.rec.Times.Started = e.step.now
			e.trials.setState(t, study.TrialRunning)
		}
		if e.spec.on(safetyTold) {
			e.tellToStop(t, a)
		}
	}
}

// lost ends a claimed attempt whose worker is gone and counts it against the
// trial's retries.
func (e *Engine) lost(id messaging.AttemptID, reason string) {
	t, a := e.trials.find(id)
	if t == nil || a.State != study.AttemptOpen || a.Worker == "" {
		return
	}
	limit := e.spec.retries(study.AttemptLost, "")
	a.State, a.Ended = study.AttemptLost, e.step.now
	a.Failure = &messaging.Failure{Reason: messaging.ReasonLost, Message: clip(fmt.Sprintf("worker %s: %s", a.Worker, reason))}
	e.keepEarly(t, nil, nil)
	if e.pruned(t) {
		return
	}
	n := countAttempts(t, study.AttemptLost, "")
	if n > limit && e.spec.on(safetyRetries) {
		t.rec.Times.Ended = e.step.now
		a.Failure.Message = clip(fmt.Sprintf("lost %d times, retries.lost is %d; last on worker %s: %s", n, limit, a.Worker, reason))
		e.history.fold(t, study.TrialFailed)
		return
	}
	e.requeue(t)
}

// handBackAll hands back every claimed attempt, since their workers died with the
// process that ran them.
func (e *Engine) handBackAll() {
	now := e.step.now
	for i := 0; i < len(e.trials.open); {
		t := e.trials.open[i]
		if a := t.rec.Last(); a != nil && a.State == study.AttemptOpen && a.Worker != "" {
			a.Outcome = messaging.OutcomeHandedBack
			e.handBack(t, a, now, "its worker's process was restarted")
		}
		if i < len(e.trials.open) && e.trials.open[i] == t { // it did not end
			i++
		}
	}
	e.demand.free = 0
}

// handBack ends an attempt without counting it against the trial's retries. Beyond
// the limit of hand-backs, the attempt counts as failed.
func (e *Engine) handBack(t *trial, a *record.Attempt, ended time.Time, why string) {
	n := countAttempts(t, study.AttemptHandedBack, "")
	a.Ended = ended
	if n < study.MaxHandBacks || !e.spec.on(safetyRetries) {
		a.State = study.AttemptHandedBack
		if !e.pruned(t) {
			e.requeue(t)
		}
		return
	}
	a.Failure = &messaging.Failure{
		Reason:  messaging.ReasonHandBacks,
		Message: clip(fmt.Sprintf("handed back %d times (limit %d): %s", n+1, study.MaxHandBacks, why)),
	}
	e.failed(t, a)
}
