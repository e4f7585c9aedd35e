package coordinator

import (
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// fleet is what the leader knows of the workers from their heartbeats. One
// goroutine owns it.
type fleet struct {
	lease   time.Duration
	since   time.Time // when this leader began to listen
	checked time.Time
	workers map[string]*member
	// generation grows with each change of anybody's slots.
	generation int64
}

// member is one worker.
type member struct {
	beat    messaging.Heartbeat
	seen    time.Time
	knows   map[messaging.AttemptID]bool
	avoided map[string]bool // studies by id
}

func newFleet(lease time.Duration) *fleet {
	return &fleet{lease: lease, since: time.Now(), workers: map[string]*member{}, generation: 1}
}

// beat takes a heartbeat in. It reports whether the worker's process is a new
// one, which remembers nothing that it was told.
func (f *fleet) beat(h messaging.Heartbeat, now time.Time) (fresh bool) {
	m := f.workers[h.Worker]
	if m == nil {
		m = &member{avoided: map[string]bool{}}
		f.workers[h.Worker] = m
	}
	if m.beat.Slots != h.Slots || m.beat.Free != h.Free || m.beat.Leaving != h.Leaving || m.beat.Pool != h.Pool || f.gone(m, now) {
		f.generation++
	}
	fresh = m.beat.Instance != h.Instance
	m.beat, m.seen = h, now
	m.knows = make(map[messaging.AttemptID]bool, len(h.Running)+len(h.Spooled))
	for _, a := range h.Running {
		m.knows[a] = true
	}
	for _, a := range h.Spooled {
		m.knows[a] = true
	}
	return fresh
}

func (f *fleet) gone(m *member, now time.Time) bool { return now.Sub(m.seen) > f.lease }

// due reports whether leases are to be checked: about once a second.
func (f *fleet) due(now time.Time) bool {
	if now.Sub(f.checked) < tickEvery {
		return false
	}
	f.checked = now
	for name, m := range f.workers {
		if f.gone(m, now) && now.Sub(m.seen) > 2*f.lease {
			delete(f.workers, name)
			f.generation++
		}
	}
	return true
}

// lost returns the attempts whose worker has been silent for a lease, or is
// alive and does not know them a lease after their claim. Nobody is given up
// within a lease of this leader's beginning.
func (f *fleet) lost(open []engine.OpenAttempt, now time.Time) []engine.Lost {
	if now.Sub(f.since) <= f.lease {
		return nil
	}
	var lost []engine.Lost
	for _, a := range open {
		m := f.workers[a.Worker]
		var reason string
		switch {
		case m == nil:
			reason = fmt.Sprintf("worker %s is unknown", a.Worker)
		case f.gone(m, now):
			reason = fmt.Sprintf("worker %s has been silent for %v", a.Worker, now.Sub(m.seen).Round(time.Second))
		case !m.knows[a.Attempt] && now.Sub(a.Claimed) > f.lease:
			reason = fmt.Sprintf("worker %s no longer knows it", a.Worker)
		default:
			continue
		}
		lost = append(lost, engine.Lost{At: now, Attempt: a.Attempt, Reason: reason})
	}
	return lost
}

// avoid keeps a worker's slots out of a study's capacity.
func (f *fleet) avoid(worker, study string) {
	if m := f.workers[worker]; m != nil && !m.avoided[study] {
		m.avoided[study] = true
		f.generation++
	}
}

// changed reports, once, that the fleet has changed since the study was last told.
func (f *fleet) changed(r *run) bool {
	if r.fleet == f.generation {
		return false
	}
	r.fleet = f.generation
	return true
}

// capacity sums the slots of a study's pool that may run it.
func (f *fleet) capacity(r *run) (slots, free int) {
	now := time.Now()
	for _, m := range f.workers {
		if m.beat.Pool != r.pool() || m.beat.Leaving || m.avoided[r.spec.ID] || f.gone(m, now) {
			continue
		}
		slots += m.beat.Slots
		free += m.beat.Free
	}
	return slots, free
}
