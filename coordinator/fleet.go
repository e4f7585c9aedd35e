package coordinator

import (
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// fleet is what the leader knows of the workers from their heartbeats. All times
// are by the leader's clock: those of workers may be wrong. One goroutine owns it.
type fleet struct {
	lease   time.Duration
	since   time.Time // when this leader began to hear, without a break
	checked time.Time
	workers map[string]*member
	// pools counts, for each pool, the heartbeats that were heard in it, and
	// whatever else changed its capacity.
	pools map[string]int64
}

// member is one worker.
type member struct {
	beat messaging.Heartbeat
	// before is the process that had the name before this one.
	before string
	// shared: two processes are known to use the name.
	shared bool
	seen   time.Time
	knows  map[messaging.AttemptID]bool
	// missing says since when it does not know an attempt that it has claimed.
	missing map[messaging.AttemptID]time.Time
}

// news is what a heartbeat says that none before it did.
type news struct {
	// fresh: the worker's process is a new one.
	fresh bool
	// shared: two processes use the name, both alive; said once.
	shared bool
}

func newFleet(lease time.Duration) *fleet {
	return &fleet{lease: lease, workers: map[string]*member{}, pools: map[string]int64{}}
}

// listenSince says that nobody was heard before a time: nobody is given up
// within a lease of it.
func (f *fleet) listenSince(t time.Time) { f.since = t }

// beat takes a heartbeat in.
func (f *fleet) beat(h messaging.Heartbeat, now time.Time) (n news) {
	m := f.workers[h.Worker]
	if m == nil {
		m = &member{missing: map[messaging.AttemptID]time.Time{}}
		f.workers[h.Worker] = m
	}
	if m.beat.Instance != h.Instance {
		n.fresh = true
		n.shared = m.before == h.Instance && !f.gone(m, now) && !m.shared
		m.shared = m.shared || n.shared
		m.before = m.beat.Instance
	}
	if m.beat.Pool != h.Pool {
		f.touch(m.beat.Pool)
	}
	f.touch(h.Pool)
	m.beat, m.seen = h, now
	m.knows = make(map[messaging.AttemptID]bool, len(h.Running)+len(h.Spooled))
	for _, list := range [][]messaging.AttemptID{h.Running, h.Spooled} {
		for _, a := range list {
			m.knows[a] = true
			delete(m.missing, a)
		}
	}
	return n
}

// touch notes that a pool's capacity is to be told again.
func (f *fleet) touch(pool string) { f.pools[pool]++ }

func (f *fleet) gone(m *member, now time.Time) bool { return now.Sub(m.seen) > f.lease }

// due reports whether leases are to be checked, about once a second, and forgets
// who has been gone for long.
func (f *fleet) due(now time.Time) bool {
	if now.Sub(f.checked) < tickEvery {
		return false
	}
	if !f.checked.IsZero() && now.Sub(f.checked) > max(f.lease/2, 3*tickEvery) {
		f.listenSince(now) // the loop was held up: what was said meanwhile is still to be heard
	}
	f.checked = now
	for name, m := range f.workers {
		if f.gone(m, now) {
			f.touch(m.beat.Pool)
		}
		for a, since := range m.missing { // of attempts that have ended otherwise
			if now.Sub(since) > 2*f.lease {
				delete(m.missing, a)
			}
		}
		if now.Sub(m.seen) > 2*f.lease {
			delete(f.workers, name)
		}
	}
	return true
}

// lost returns the attempts whose worker has been silent for a lease, or is
// alive and has not known them for one. Nobody is given up within a lease of
// when the leader began to hear.
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
			reason = fmt.Sprintf("not heard for %v", f.lease)
		case f.gone(m, now):
			reason = fmt.Sprintf("silent for %v", now.Sub(m.seen).Round(time.Second))
		case !m.knows[a.Attempt] && now.Sub(m.missingSince(a.Attempt, now)) > f.lease:
			reason = fmt.Sprintf("has not known it for %v", f.lease)
			delete(m.missing, a.Attempt)
		default:
			continue
		}
		lost = append(lost, engine.Lost{At: now, Attempt: a.Attempt, Reason: reason})
	}
	return lost
}

// missingSince is since when the worker has not known an attempt: from now on
// where it was not missing before.
func (m *member) missingSince(id messaging.AttemptID, now time.Time) time.Time {
	since, ok := m.missing[id]
	if !ok {
		since = now
		m.missing[id] = now
	}
	return since
}

// changed reports, once, that a study's pool has changed since it was last told.
func (f *fleet) changed(r *run) bool {
	if r.told == f.pools[r.pool()] {
		return false
	}
	r.told = f.pools[r.pool()]
	return true
}

// capacity sums the slots of a study's pool that may run it.
func (f *fleet) capacity(r *run, now time.Time) (slots, free int) {
	for name, m := range f.workers {
		if _, avoided := r.avoided[name]; avoided || m.beat.Pool != r.pool() || m.beat.Leaving || f.gone(m, now) {
			continue
		}
		slots += m.beat.Slots
		free += m.beat.Free
	}
	return slots, free
}
