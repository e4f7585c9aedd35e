package coordinator

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/internal/base/mutant"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// tick lets time pass for every running study and checks the workers' leases. It
// returns the time by which it must be called again. Leases come BEFORE the study's own tick, and so does the
// pool's capacity: an engine that is told of a lost attempt or of free slots can use them in the same round.
func (l *leader) tick(now time.Time) (next time.Time) {
	next = now.Add(lease.CheckEvery)
	l.checkSpace()
	checking := l.workers.Due(now)
	if checking {
		l.observe(now)
		l.retellCapacity()
	}
	for _, r := range l.studies.Ordered() {
		if !r.Running() {
			if checking {
				l.studies.RestUnused(r, now)
			}
			continue
		}
		if checking {
			l.expire(r, now)
		}
		l.tellCapacity(r, now)
		if r.Due(now) {
			l.studies.Step(r, engine.Tick{At: now})
		}
		if !r.Wake.IsZero() && r.Wake.Before(next) {
			next = r.Wake
		}
	}
	return next
}

// expire ends the attempts of a study whose workers or clients are gone. Whoever is gone may still be at work,
// behind a partition: the trial's first valid result counts, whichever attempt it is of.
func (l *leader) expire(r *studies.Study, now time.Time) {
	if !mutant.On(mutant.WorkerLease) {
		return
	}
	var expired []engine.Lost
	if r.ByClients() {
		expired = l.workers.ExpiredOf(&r.Clients, r.Engine.Open(), now)
	} else {
		expired = l.workers.Expired(r.Engine.Open(), now)
	}
	for _, lost := range expired {
		l.log.Warn("lost an attempt", telemetry.LogStudy, r.Name(), telemetry.LogTrial, lost.Attempt.Trial,
			telemetry.LogAttempt, lost.Attempt.Attempt, telemetry.LogReason, lost.Reason)
		l.studies.Step(r, lost)
	}
}
