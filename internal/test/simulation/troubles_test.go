package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// trouble plays faults for a while, and then ends all of them.
func (w *world) trouble(d time.Duration) {
	w.setFaulty(true)
	end := time.Now().Add(d)
	pause := []time.Duration{2 * time.Second, 8 * time.Second, 30 * time.Second}[w.rng.IntN(3)]
	for {
		time.Sleep(time.Duration(w.rng.ExpFloat64() * float64(pause)))
		if time.Now().After(end) || w.quiet() {
			break
		}
		w.event()
	}
	w.setFaulty(false)
	w.etcd.Start()
	w.etcd.SetFull(false)
	for _, c := range w.coordinators {
		c.heal()
	}
	for _, k := range w.workers {
		k.heal()
	}
	w.logs.note("the faults are over")
}

func (w *world) setFaulty(faulty bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faulty = faulty
	w.armed = map[string]arm{}
}

// event plays one fault of the world.
func (w *world) event() {
	c := w.coordinators[w.rng.IntN(len(w.coordinators))]
	if w.rng.IntN(2) == 0 { // more of them are of the leader
		leader := w.leader()
		for _, other := range w.coordinators {
			if other.name == leader {
				c = other
			}
		}
	}
	k := w.workers[w.rng.IntN(len(w.workers))]
	d := time.Duration(w.rng.ExpFloat64() * float64(8*time.Second))
	note := func(format string, args ...any) { w.logs.note(fmt.Sprintf(format, args...)) }
	switch w.rng.IntN(18) {
	case 0, 1:
		note("%s is killed", c.name)
		c.kill()
		c.restart(d)
	case 2, 3, 4:
		// A late operation comes around the end of the lease.
		a := arm{in: 1 + w.rng.IntN(30), last: ending(w.rng.IntN(3)), late: time.Duration((0.7 + w.rng.Float64()) * float64(w.lease))}
		note("%s dies at its operation %d (%d: 0 undone, 1 done, 2 done %v later)", c.name, a.in, a.last, a.late)
		a.die = func() {
			c.kill()
			c.restart(d)
		}
		w.mu.Lock()
		w.armed[c.name] = a
		w.mu.Unlock()
	case 5:
		note("%s is told to end", c.name)
		c.end()
		c.restart(d)
	case 6:
		note("%s is cut off from etcd for %v", c.name, d)
		c.cut(true, false)
		time.AfterFunc(d, c.join)
	case 7:
		note("%s is cut off from the broker for %v", c.name, d)
		c.cut(false, true)
		time.AfterFunc(d, c.join)
	case 8:
		note("%s is cut off for %v", c.name, d)
		c.cut(true, true)
		time.AfterFunc(d, c.join)
	case 9, 10:
		lost := w.rng.IntN(4) == 0
		note("%s is killed (its disk is lost: %t)", k.name, lost)
		k.kill(lost)
		k.restart(d)
	case 11:
		note("%s is told to end", k.name)
		k.end()
		k.restart(d)
	case 12:
		note("%s is cut off for %v", k.name, 3*d)
		k.cut(true)
		time.AfterFunc(3*d, func() { k.cut(false) })
	case 13:
		note("etcd is away for %v", d)
		w.etcd.Stop()
		time.AfterFunc(d, w.etcd.Start)
	case 14:
		note("etcd is full for %v", d)
		w.etcd.SetFull(true)
		time.AfterFunc(d, func() { w.etcd.SetFull(false) })
	case 15:
		w.compact()
	case 16:
		note("the assignments are deleted")
		w.broker.WipeAssignments()
	case 17:
		w.loseStream(note)
	}
}

// leader returns the name of the leader; empty if there is none.
func (w *world) leader() string {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	name, _, err := election.Leader(ctx, w.client.Client, w.observer.LeaderKey())
	if err != nil {
		return ""
	}
	return name
}

// compact compacts etcd's history up to a drawn place.
func (w *world) compact() {
	last, compacted := w.etcd.Revision()
	if last <= compacted+1 {
		return
	}
	to := compacted + 1 + w.rng.Int64N(last-compacted)
	w.logs.note(fmt.Sprint("etcd's history is compacted up to ", to, " of ", last))
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	_, _ = w.client.Compact(ctx, to) // etcd may be away
}

// loseStream deletes a stream, or restores an older copy of it.
func (w *world) loseStream(note func(string, ...any)) {
	s := []messaging.Stream{messaging.StreamClaim, messaging.StreamResult, messaging.StreamMetric}[w.rng.IntN(3)]
	if s == messaging.StreamClaim {
		w.check.forgive()
	}
	if w.rng.IntN(2) == 0 {
		note("the stream %s is deleted", s)
		w.broker.Recreate(s)
		return
	}
	bus := w.broker.Leader()
	defer bus.Close()
	last, err := bus.Last(w.t.Context(), s)
	if err != nil {
		w.t.Fatal(err)
	}
	to := w.rng.Uint64N(last + 1)
	note("the stream %s goes back to message %d of %d", s, to, last)
	w.broker.Rewind(s, to)
}
