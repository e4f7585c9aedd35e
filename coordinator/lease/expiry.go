package lease

import (
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// An attempt's lease expires when nothing has renewed it for the length of a lease:
//
//   - a worker's, if the worker has been silent for that long, or if it is alive but none of its
//     heartbeats has named the attempt for that long, since its process was replaced;
//   - a client's, if none of its calls has named the attempt for that long.
//
// No lease expires within its length of when the leader began to listen: see ListenSince. Whoever
// is alive has been heard by then.

// silent reports whether a worker's lease has expired.
func (w *Workers) silent(m *worker, now time.Time) bool { return now.Sub(m.seen) > w.lease }

// Expired returns those of a study's open attempts that their workers have lost, and why. The
// clock of an attempt that its worker does not name runs even while no lease can expire, so call
// Expired at each check from the beginning.
func (w *Workers) Expired(open []engine.OpenAttempt, now time.Time) []engine.Lost {
	early := now.Sub(w.since) <= w.lease
	var lost []engine.Lost
	for _, a := range open {
		m := w.workers[a.Worker]
		var reason string
		switch {
		case m == nil:
			reason = fmt.Sprintf("not heard for %v", w.lease)
		case w.silent(m, now):
			reason = fmt.Sprintf("silent for %v", now.Sub(m.seen).Round(time.Second))
		case !m.knows[a.Attempt] && now.Sub(m.missingSince(a.Attempt, now)) > w.lease && !early:
			reason = fmt.Sprintf("has not reported it as running for %v", w.lease)
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
func (m *worker) missingSince(id messaging.AttemptID, now time.Time) time.Time {
	since, ok := m.missing[id]
	if !ok {
		since = now
		m.missing[id] = now
	}
	return since
}

// Clients knows when the clients of one study were last heard about the attempts that they hold.
// The zero Clients has heard nobody. One goroutine owns it.
type Clients struct {
	heard map[messaging.AttemptID]time.Time
}

// Hear renews the lease of an attempt that a client holds.
func (c *Clients) Hear(id messaging.AttemptID, now time.Time) {
	if c.heard == nil {
		c.heard = map[messaging.AttemptID]time.Time{}
	}
	c.heard[id] = now
}

// ExpiredOf returns those of a study's open attempts whose clients have been silent for a lease,
// which is as long as a worker's, and why. It forgets all attempts that are not open.
func (w *Workers) ExpiredOf(c *Clients, open []engine.OpenAttempt, now time.Time) []engine.Lost {
	heard := make(map[messaging.AttemptID]time.Time, len(open))
	var lost []engine.Lost
	for _, a := range open {
		last := a.Claimed
		for _, at := range []time.Time{w.since, c.heard[a.Attempt]} {
			if at.After(last) {
				last = at
			}
		}
		if silence := now.Sub(last); silence > w.lease {
			reason := fmt.Sprintf("its client was silent for %v", silence.Round(time.Second))
			lost = append(lost, engine.Lost{At: now, Attempt: a.Attempt, Reason: reason})
			continue
		}
		heard[a.Attempt] = last
	}
	c.heard = heard
	return lost
}
