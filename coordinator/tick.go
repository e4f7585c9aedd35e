package coordinator

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
)

// tick lets time pass for every running study and checks the workers' leases. It
// returns the time by which it must be called again.
func (l *leader) tick(now time.Time) (next time.Time) {
	next = now.Add(tickEvery)
	l.watch.lookForRoom()
	checking := l.watch.workers.Due(now)
	if checking {
		l.observer.observe(now)
		l.watch.retellCapacity()
	}
	for _, r := range l.studies.ordered() {
		if !r.running() {
			if checking && now.Sub(r.used) > restAfter {
				l.studies.rest(r)
			}
			continue
		}
		if checking {
			l.watch.expire(r, now)
		}
		l.watch.tellCapacity(r, now)
		if r.due(now) {
			l.studies.step(r, engine.Tick{At: now})
		}
		if !r.wake.IsZero() && r.wake.Before(next) {
			next = r.wake
		}
	}
	return next
}
