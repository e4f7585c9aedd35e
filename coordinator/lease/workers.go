// Package lease knows which workers and clients are alive, and decides when an attempt is lost
// because whoever evaluates it has been silent for too long: see expiry.go.
//
// A worker's heartbeats renew the leases of all its attempts, and each call of a client those of
// the trials that it names. All times come from the leader's clock, since those of workers may be
// wrong.
package lease

import (
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// CheckEvery is how often leases are checked.
const CheckEvery = time.Second

// Workers holds what the leader knows about the workers from their heartbeats. One goroutine
// owns it.
type Workers struct {
	lease   time.Duration
	since   time.Time // when this leader began to receive heartbeats without a break
	checked time.Time
	workers map[string]*worker
	pools   map[string]*pool
}

// worker is what the heartbeats of one name have said.
type worker struct {
	beat messaging.Heartbeat
	// before is the process that used the name before this one.
	before string
	// shared: two processes are known to use the name.
	shared bool
	seen   time.Time
	// counted: its slots are in those of its pool.
	counted bool
	knows   map[messaging.AttemptID]bool
	// missing holds, for each attempt that the worker has claimed but does not know
	// of, the time since when it has not.
	missing map[messaging.AttemptID]time.Time
}

// News is what a heartbeat says that no earlier one did.
type News struct {
	// Fresh: the worker's process is new.
	Fresh bool
	// Shared: two live processes use the name; reported once.
	Shared bool
}

// NewWorkers returns the leases of workers that may be silent for a time; it knows no worker yet.
func NewWorkers(lease time.Duration) *Workers {
	return &Workers{lease: lease, workers: map[string]*worker{}, pools: map[string]*pool{}}
}

// ListenSince records that heartbeats may have been missed before t: no worker or client is given
// up within a lease of t.
func (w *Workers) ListenSince(t time.Time) { w.since = t }

// Beat applies a heartbeat, which renews the leases of the attempts that it names.
func (w *Workers) Beat(h messaging.Heartbeat, now time.Time) (n News) {
	m := w.workers[h.Worker]
	if m == nil {
		m = &worker{missing: map[messaging.AttemptID]time.Time{}}
		w.workers[h.Worker] = m
	}
	if m.beat.Instance != h.Instance {
		n.Fresh = true
		n.Shared = m.before == h.Instance && !w.silent(m, now) && !m.shared
		m.shared = m.shared || n.Shared
		m.before = m.beat.Instance
	}
	if m.beat.Pool != h.Pool {
		w.Touch(m.beat.Pool)
	}
	w.Touch(h.Pool)
	w.discount(m)
	m.beat, m.seen = h, now
	w.count(m)
	m.knows = make(map[messaging.AttemptID]bool, len(h.Running)+len(h.Spooled))
	for _, list := range [][]messaging.AttemptID{h.Running, h.Spooled} {
		for _, a := range list {
			m.knows[a] = true
			delete(m.missing, a)
		}
	}
	return n
}

// Due reports whether it is time to check leases, about once a second. Then it no longer
// counts the slots of silent workers, and forgets workers that have been silent for long.
//
// The owner MUST call it regularly. After a pause, heartbeats may still wait to be read, so it
// gives every worker a new lease.
func (w *Workers) Due(now time.Time) bool {
	if now.Sub(w.checked) < CheckEvery {
		return false
	}
	if !w.checked.IsZero() && now.Sub(w.checked) > max(w.lease/2, 3*CheckEvery) {
		w.ListenSince(now)
	}
	w.checked = now
	for name, m := range w.workers {
		if w.silent(m, now) {
			w.Touch(m.beat.Pool)
			w.discount(m)
		}
		for a, since := range m.missing { // attempts that have ended in another way
			if now.Sub(since) > 2*w.lease {
				delete(m.missing, a)
			}
		}
		if now.Sub(m.seen) > 2*w.lease {
			delete(w.workers, name)
		}
	}
	return true
}
