package engine

import (
	"fmt"
	"maps"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// claimed applies a claim. The first claim of an open attempt wins; workers that
// claim it later are told to stop. A claim of an unknown attempt, or with a wrong
// nonce, spoils the attempt whose claim's place it has taken.
func (l *attempts) claimed(c *messaging.Claim) {
	t, a := l.trials.find(c.AttemptID)
	switch {
	case t == nil:
		l.step.out.cancel(c.Worker, c.AttemptID, "the leader knows no such attempt")
		l.spoiled(c.AttemptID)
	case c.Worker == messaging.LeaderName:
		l.withdrawn(t, a)
	case a.State != study.AttemptOpen:
		if !endedBy(a, c.Worker) {
			l.step.out.cancel(c.Worker, c.AttemptID, fmt.Sprintf("the attempt has ended: %s", a.State))
		}
	case a.Worker == "" || !l.spec.on(safetyClaim):
		l.claim(t, a, c)
	case a.Worker != c.Worker:
		l.step.out.cancel(c.Worker, c.AttemptID, "another worker claimed the attempt first")
	}
}

// spoiled replaces an attempt that nobody can claim, because another message has
// taken the place of its claim. It does so as if the leader had withdrawn the
// attempt. If the attempt is not open yet, spoiled remembers the place until then.
func (l *attempts) spoiled(id messaging.AttemptID) {
	if id.Study != l.spec.ID || id.Trial < 1 || id.Attempt < 1 || !l.spec.on(safetySpoiled) {
		return
	}
	if id.Trial > len(l.trials.all) {
		l.occupy(id)
		return
	}
	t := l.trials.all[id.Trial-1]
	l.step.restore(t)
	switch last := t.rec.Last(); {
	case t.rec.State.Terminal():
	case id.Attempt > len(t.rec.Attempts):
		l.occupy(id)
	case id.Attempt == last.Number && last.Nonce != id.Nonce && last.State == study.AttemptOpen && last.Worker == "":
		l.step.out.warn("trial %d: attempt %d cannot be claimed: another message is in its claim's place", id.Trial, id.Attempt)
		l.withdrawn(t, last)
	}
}

// maxOccupied bounds the attempt numbers in record.Status.Occupied. A trial's record
// has no room for more attempts.
const maxOccupied = 4096

// occupy remembers that a message has taken the place of the claim of an attempt that
// is not open yet. It keeps only the highest trial for each attempt number, so that a
// worker that claims unknown attempts cannot make the record grow. The attempts with
// that number of lower trials are then skipped too, which is harmless.
func (l *attempts) occupy(id messaging.AttemptID) {
	if id.Attempt > maxOccupied || l.occupied[id.Attempt] >= id.Trial || !l.spec.on(safetyEarly) {
		return
	}
	l.step.out.warn("trial %d: another message is in the place of attempt %d's claim before it was opened", id.Trial, id.Attempt)
	occupied := maps.Clone(l.occupied) // snapshots share it
	if occupied == nil {
		occupied = map[int]int{}
	}
	occupied[id.Attempt] = id.Trial
	l.occupied = occupied
	l.step.changed.status = true
}

// isOccupied reports whether a message took the place of an attempt's claim before the attempt was opened.
// No worker can claim such an attempt: see occupy.
func (l *attempts) isOccupied(t *trial, attempt int) bool {
	return l.occupied[attempt] >= t.rec.Number
}

// withdrawn applies a leader's own claim. Usually the attempt has ended already. If
// it has not, the ledger was restored to an earlier time. Then nobody else can claim
// the attempt, so the trial needs another one.
func (l *attempts) withdrawn(t *trial, a *record.Attempt) {
	if a.State == study.AttemptOpen && a.Worker == "" && l.forfeit(t, a) {
		l.trials.wait(t)
	}
}

// claim gives an open attempt to the worker that claimed it first. The claim may come after a
// decision to stop the trial, which the worker is then told at once.
func (l *attempts) claim(t *trial, a *record.Attempt, c *messaging.Claim) {
	a.Worker, a.Claimed, a.Site = c.Worker, c.At, c.Site
	if a.Claimed.IsZero() {
		a.Claimed = l.step.now
	}
	t.claimed, t.rec.Times.Claimed = l.step.now, a.Claimed
	l.slots.claim()
	l.trials.setState(t, study.TrialClaimed)
	l.pruning.tellToStop(t, a)
}

// endedBy reports whether an attempt was ended by the worker's own result. Then the
// worker need not be told to stop.
func endedBy(a *record.Attempt, worker string) bool {
	return a.Worker == worker && a.Outcome != "" && a.Outcome != messaging.OutcomeCancelled
}

// alive records when an attempt's evaluation has begun and, in a job, when its program has. It cancels an evaluation that
// is no longer wanted.
func (l *attempts) alive(ev *Alive) {
	worker, id := ev.Worker, ev.Attempt
	t, a := l.trials.find(id)
	switch {
	case t == nil:
		l.step.out.cancel(worker, id, "the leader knows no such attempt")
	case a.State != study.AttemptOpen:
		// Even if this worker ended it: the claim stream may have been lost since, and
		// the worker may have claimed the attempt again.
		l.step.out.cancel(worker, id, fmt.Sprintf("the attempt has ended: %s", a.State))
	case a.Worker == "": // the claim is in the stream but has not been read
	case a.Worker != worker:
		l.step.out.cancel(worker, id, "another worker claimed the attempt first")
	default:
		if t.rec.State == study.TrialClaimed {
			a.Started = l.step.now
			t.rec.Times.Started = l.step.now
			l.trials.setState(t, study.TrialRunning)
		}
		if ev.Begun && a.Begun.IsZero() && a.InJob() {
			a.Begun = l.step.now
			l.step.touch(t)
		}
		if l.spec.on(safetyTold) {
			l.pruning.tellToStop(t, a)
		}
	}
}

// lost ends a claimed attempt whose worker's lease has expired, which counts against the trial's
// retries. If the worker lives and its result comes later, that is still used: see results.
func (l *attempts) lost(id messaging.AttemptID, reason string) {
	t, a := l.trials.find(id)
	if t == nil || a.State != study.AttemptOpen || a.Worker == "" {
		return
	}
	limit := l.spec.retries(study.AttemptLost, "")
	a.State, a.Ended = study.AttemptLost, l.step.now
	a.Failure = &messaging.Failure{Reason: messaging.ReasonLost, Message: clip(fmt.Sprintf("worker %s: %s", a.Worker, reason))}
	l.pruning.keepEarly(t, nil, nil)
	if l.pruning.pruned(t) {
		return
	}
	n := countAttempts(t, study.AttemptLost, "")
	if n > limit && l.spec.on(safetyRetries) {
		t.rec.Times.Ended = l.step.now
		a.Failure.Message = clip(fmt.Sprintf("lost %d times, retries.lost is %d; last on worker %s: %s", n, limit, a.Worker, reason))
		l.history.fold(t, study.TrialFailed)
		return
	}
	l.requeue(t)
}

// handBackAll hands back every claimed attempt, since their workers died with the
// process that ran them.
func (l *attempts) handBackAll() {
	now := l.step.now
	for i := 0; i < len(l.trials.open); {
		t := l.trials.open[i]
		if t.holder() != "" {
			a := t.rec.Last()
			a.Outcome = messaging.OutcomeHandedBack
			l.handBack(t, a, now, "its worker's process was restarted")
		}
		if i < len(l.trials.open) && l.trials.open[i] == t { // it did not end
			i++
		}
	}
	l.slots.restart()
}
