package coordinator

import (
	"cmp"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// restAfter is how long an ended study keeps its engine after its last use.
const restAfter = 5 * time.Minute

// tick lets time pass for every running study and checks the workers' leases. It
// returns when it has to be called again at the latest.
func (l *leader) tick(now time.Time) (next time.Time) {
	next = now.Add(tickEvery)
	checking := l.fleet.due(now)
	if checking {
		l.look(now)
	}
	for _, r := range l.ordered() {
		if !r.running() {
			if checking && now.Sub(r.used) > restAfter {
				l.rest(r)
			}
			continue
		}
		if checking {
			l.expire(r, now)
		}
		if l.fleet.changed(r) {
			slots, free := l.fleet.capacity(r, now)
			l.step(r, engine.Capacity{At: now, Slots: slots, Free: free})
		}
		if r.due(now) {
			l.step(r, engine.Tick{At: now})
		}
		if !r.wake.IsZero() && r.wake.Before(next) {
			next = r.wake
		}
	}
	return next
}

// expire gives up the attempts of a study whose workers are gone.
func (l *leader) expire(r *run, now time.Time) {
	for _, lost := range l.fleet.lost(r.engine.Open(), now) {
		l.log.Warn("an attempt is lost", telemetry.LogStudy, r.name(), telemetry.LogTrial, lost.Attempt.Trial,
			telemetry.LogAttempt, lost.Attempt.Attempt, telemetry.LogReason, lost.Reason)
		l.step(r, lost)
	}
}

// rest forgets the engine of an ended study; it is loaded again when it is wanted.
func (l *leader) rest(r *run) {
	r.engine, r.optimizer, r.wake = nil, nil, time.Time{}
	delete(l.loaded, r.spec.ID)
}

// ordered returns the studies that have an engine, in the order of their ids,
// which is the order in which they were created.
func (l *leader) ordered() []*run {
	rs := make([]*run, 0, len(l.loaded))
	for _, r := range l.loaded {
		rs = append(rs, r)
	}
	slices.SortFunc(rs, func(a, b *run) int { return cmp.Compare(a.spec.ID, b.spec.ID) })
	return rs
}
