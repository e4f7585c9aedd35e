package coordinator

import (
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// fleet holds what the leader knows about the workers from their heartbeats. All
// times come from the leader's clock, since those of workers may be wrong. One
// goroutine owns it.
type fleet struct {
	lease   time.Duration
	since   time.Time // when this leader began to receive heartbeats without a break
	checked time.Time
	workers map[string]*member
	// pools counts, for each pool, the heartbeats received in it and all other
	// changes of its capacity.
	pools map[string]int64
	// totals are the slots of each pool's counted workers.
	totals map[string]total
}

// total is a number of slots, and how many of these are free.
type total struct{ slots, free int }

func (t total) plus(slots, free int) total { return total{t.slots + slots, t.free + free} }

// member is one worker.
type member struct {
	beat messaging.Heartbeat
	// before is the process that used the name before this one.
	before string
	// shared: two processes are known to use the name.
	shared bool
	seen   time.Time
	// counted: its slots are in the fleet's totals.
	counted bool
	knows   map[messaging.AttemptID]bool
	// missing holds, for each attempt that the worker has claimed but does not know
	// of, the time since when it has not.
	missing map[messaging.AttemptID]time.Time
}

// news is what a heartbeat says that no earlier one did.
type news struct {
	// fresh: the worker's process is new.
	fresh bool
	// shared: two live processes use the name; reported once.
	shared bool
}

func newFleet(lease time.Duration) *fleet {
	return &fleet{lease: lease, workers: map[string]*member{}, pools: map[string]int64{}, totals: map[string]total{}}
}

// listenSince records that no heartbeat was received before t: no worker is given
// up within a lease of t.
func (f *fleet) listenSince(t time.Time) { f.since = t }

// beat applies a heartbeat.
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
	f.discount(m)
	m.beat, m.seen = h, now
	f.count(m)
	m.knows = make(map[messaging.AttemptID]bool, len(h.Running)+len(h.Spooled))
	for _, list := range [][]messaging.AttemptID{h.Running, h.Spooled} {
		for _, a := range list {
			m.knows[a] = true
			delete(m.missing, a)
		}
	}
	return n
}

// count adds a worker's slots to its pool's, unless it leaves.
func (f *fleet) count(m *member) {
	if m.beat.Leaving {
		return
	}
	m.counted = true
	f.totals[m.beat.Pool] = f.totals[m.beat.Pool].plus(m.beat.Slots, m.beat.Free)
}

// discount takes a worker's slots out of its pool's.
func (f *fleet) discount(m *member) {
	if !m.counted {
		return
	}
	m.counted = false
	f.totals[m.beat.Pool] = f.totals[m.beat.Pool].plus(-m.beat.Slots, -m.beat.Free)
}

// touch marks a pool's capacity as changed.
func (f *fleet) touch(pool string) { f.pools[pool]++ }

func (f *fleet) gone(m *member, now time.Time) bool { return now.Sub(m.seen) > f.lease }

// due reports whether it is time to check leases, about once a second. Then it no longer
// counts workers that are gone, and removes those that have been gone for long.
func (f *fleet) due(now time.Time) bool {
	if now.Sub(f.checked) < tickEvery {
		return false
	}
	if !f.checked.IsZero() && now.Sub(f.checked) > max(f.lease/2, 3*tickEvery) {
		f.listenSince(now) // the loop was delayed: heartbeats from meanwhile are still in its inbox
	}
	f.checked = now
	for name, m := range f.workers {
		if f.gone(m, now) {
			f.touch(m.beat.Pool)
			f.discount(m)
		}
		for a, since := range m.missing { // attempts that have ended in another way
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

// lost returns the attempts whose worker has been silent for a lease, or is alive
// but has not known of them for a lease. It returns none within a lease of when the
// leader began to receive heartbeats. The clock of an attempt that its worker does not
// know of runs even then, so call lost from the beginning.
func (f *fleet) lost(open []engine.OpenAttempt, now time.Time) []engine.Lost {
	early := now.Sub(f.since) <= f.lease
	var lost []engine.Lost
	for _, a := range open {
		m := f.workers[a.Worker]
		var reason string
		switch {
		case m == nil:
			reason = fmt.Sprintf("not heard for %v", f.lease)
		case f.gone(m, now):
			reason = fmt.Sprintf("silent for %v", now.Sub(m.seen).Round(time.Second))
		case !m.knows[a.Attempt] && now.Sub(m.missingSince(a.Attempt, now)) > f.lease && !early:
			reason = fmt.Sprintf("has not reported it as running for %v", f.lease)
			delete(m.missing, a.Attempt)
		default:
			continue
		}
		if early {
			continue
		}
		lost = append(lost, engine.Lost{At: now, Attempt: a.Attempt, Reason: reason})
	}
	return lost
}

// missingSince returns since when the worker has not known of an attempt. If the
// attempt was not missing before, that is now.
func (m *member) missingSince(id messaging.AttemptID, now time.Time) time.Time {
	since, ok := m.missing[id]
	if !ok {
		since = now
		m.missing[id] = now
	}
	return since
}

// changed reports whether a study's pool has changed since the last call.
func (f *fleet) changed(r *run) bool {
	if r.told == f.pools[r.pool()] {
		return false
	}
	r.told = f.pools[r.pool()]
	return true
}

// capacity returns how many slots of a study's pool may run it, and how many of
// these are free. A worker that is silent counts until due finds it gone.
func (f *fleet) capacity(r *run) (slots, free int) {
	t := f.totals[r.pool()]
	for name := range r.avoided {
		if m := f.workers[name]; m != nil && m.counted && m.beat.Pool == r.pool() {
			t = t.plus(-m.beat.Slots, -m.beat.Free)
		}
	}
	return t.slots, t.free
}
