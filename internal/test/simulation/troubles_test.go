package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// kind is a kind of trouble.
type kind struct {
	name string
	// often is how often it is drawn, compared with the others.
	often int
	draw  func(w *world, t *trouble)
	play  func(w *world, t trouble)
}

// kinds are all kinds.
var kinds = []kind{
	{"kill a coordinator", 4, ofCoordinator, func(w *world, t trouble) {
		c := w.coordinator(t.Of)
		c.kill()
		c.restart(t.For)
	}},
	{"kill a coordinator at an operation", 6, func(w *world, t *trouble) {
		ofCoordinator(w, t)
		t.In, t.Ending = 1+w.troubles.IntN(30), []ending{undone, done, late}[w.troubles.IntN(3)]
		if t.Ending == late { // around the end of the lease
			t.Late = span((0.7 + w.troubles.Float64()) * float64(w.lease))
		}
	}, (*world).arm},
	{"end a coordinator", 2, ofCoordinator, func(w *world, t trouble) {
		c := w.coordinator(t.Of)
		c.end()
		c.restart(t.For)
	}},
	{"cut a coordinator off from etcd", 2, ofCoordinator, func(w *world, t trouble) { w.cut(t, true, false) }},
	{"cut a coordinator off from the broker", 2, ofCoordinator, func(w *world, t trouble) { w.cut(t, false, true) }},
	{"cut a coordinator off", 2, ofCoordinator, func(w *world, t trouble) { w.cut(t, true, true) }},
	{"kill a worker", 4, func(w *world, t *trouble) {
		ofWorker(w, t)
		t.Lost = w.troubles.IntN(4) == 0 // its disk
	}, func(w *world, t trouble) {
		k := w.worker(t.Of)
		k.kill(t.Lost)
		k.restart(t.For)
	}},
	{"end a worker", 2, ofWorker, func(w *world, t trouble) {
		k := w.worker(t.Of)
		k.end()
		k.restart(t.For)
	}},
	{"cut a worker off", 2, func(w *world, t *trouble) {
		ofWorker(w, t)
		t.For *= 3
	}, func(w *world, t trouble) {
		k := w.worker(t.Of)
		k.cut(true)
		time.AfterFunc(time.Duration(t.For), func() { k.cut(false) })
	}},
	{"step a worker's clock", 1, func(w *world, t *trouble) {
		ofWorker(w, t)
		year := 365 * 24 * time.Hour
		t.For = span([]time.Duration{0, -time.Minute, time.Hour, -year, year}[w.troubles.IntN(5)])
	}, func(w *world, t trouble) { w.worker(t.Of).clock.step(time.Duration(t.For)) }},
	{"etcd is away", 2, nothing, func(w *world, t trouble) {
		w.etcd.Stop()
		time.AfterFunc(time.Duration(t.For), w.etcd.Start)
	}},
	{"etcd is full", 2, nothing, func(w *world, t trouble) {
		w.etcd.SetFull(true)
		time.AfterFunc(time.Duration(t.For), func() { w.etcd.SetFull(false) })
	}},
	{"compact etcd", 2, part, (*world).compact},
	{"delete the assignments", 2, nothing, func(w *world, _ trouble) { w.broker.WipeAssignments() }},
	{"delete a stream", 1, ofStream, func(w *world, t trouble) {
		w.forgive(t)
		w.broker.Recreate(messaging.Stream(t.Of))
	}},
	{"take a stream back in time", 1, func(w *world, t *trouble) {
		ofStream(w, t)
		part(w, t)
	}, (*world).rewind},
	{"write a backup", 2, nothing, func(w *world, _ trouble) { w.backUp() }},
	{"restore the backup", 1, func(w *world, t *trouble) {
		t.Lost, t.Killed = w.troubles.IntN(3) > 0, w.troubles.IntN(2) == 0
		if !t.Lost || w.troubles.IntN(2) == 0 {
			t.For = 0 // nobody finds an empty etcd
		}
	}, (*world).restore},
}

// kindOf returns the kind of a name; false if there is none.
func kindOf(name string) (kind, bool) {
	if i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name }); i >= 0 {
		return kinds[i], true
	}
	return kind{}, false
}

func nothing(*world, *trouble) {}

func part(w *world, t *trouble) { t.Part = w.troubles.Float64() }

// ofCoordinator draws a coordinator, more often the leader.
func ofCoordinator(w *world, t *trouble) {
	t.Of = w.coordinators[w.troubles.IntN(len(w.coordinators))].name
	if leader := w.leader(); w.troubles.IntN(2) == 0 && leader != "" && w.coordinator(leader) != nil {
		t.Of = leader
	}
}

func ofWorker(w *world, t *trouble) { t.Of = w.workers[w.troubles.IntN(len(w.workers))].name }

func ofStream(w *world, t *trouble) {
	streams := []messaging.Stream{messaging.StreamClaim, messaging.StreamResult, messaging.StreamMetric}
	t.Of = string(streams[w.troubles.IntN(len(streams))])
}

// trouble plays faults for a while, and then ends all of them.
func (w *world) trouble() {
	w.setFaulty(true)
	for {
		t, ok := w.next()
		if !ok {
			break
		}
		w.logs.note(fmt.Sprintf("%+v", t))
		w.played.troubles = append(w.played.troubles, t)
		if k, ok := kindOf(t.Kind); ok {
			k.play(w, t)
		}
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

// next waits for the next trouble, of the script if there is one. It reports whether there is
// another.
func (w *world) next() (t trouble, ok bool) {
	until := w.played.Until
	if w.script != nil {
		if n := len(w.played.troubles); n < len(w.script.troubles) {
			t = w.script.troubles[n]
			until = t.At
			ok = true
		}
		time.Sleep(time.Duration(until) - time.Since(w.logs.begun))
		return t, ok && !w.quiet()
	}
	time.Sleep(time.Duration(w.troubles.ExpFloat64() * float64(w.pause)))
	t.At = span(time.Since(w.logs.begun))
	if t.At > until || w.quiet() {
		return t, false
	}
	t.For = span(w.troubles.ExpFloat64() * float64(8*time.Second))
	sum := 0
	for _, k := range kinds {
		sum += k.often
	}
	for i, drawn := 0, w.troubles.IntN(sum); ; i++ {
		if drawn -= kinds[i].often; drawn < 0 {
			t.Kind = kinds[i].name
			kinds[i].draw(w, &t)
			return t, true
		}
	}
}

func (w *world) setFaulty(faulty bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faulty = faulty
	w.armed = map[string]arm{}
}

// arm lets a coordinator die at one of its next operations.
func (w *world) arm(t trouble) {
	c := w.coordinator(t.Of)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed[c.name] = arm{in: t.In, last: t.Ending, late: time.Duration(t.Late), die: func() {
		c.kill()
		c.restart(t.For)
	}}
}

// cut cuts a coordinator off for a while.
func (w *world) cut(t trouble, etcd, bus bool) {
	c := w.coordinator(t.Of)
	c.cut(etcd, bus)
	time.AfterFunc(time.Duration(t.For), c.join)
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

// compact compacts etcd's history.
func (w *world) compact(t trouble) {
	last, compacted := w.etcd.Revision()
	to := compacted + 1 + int64((1-t.Part)*float64(last-compacted-1))
	if to >= last {
		return
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	_, _ = w.client.Compact(ctx, to) // etcd may be away
}

// rewind restores an older copy of a stream.
func (w *world) rewind(t trouble) {
	w.forgive(t)
	bus := w.broker.Leader()
	defer bus.Close()
	last, err := bus.Last(w.t.Context(), messaging.Stream(t.Of))
	if err != nil {
		w.t.Fatal(err)
	}
	w.broker.Rewind(messaging.Stream(t.Of), uint64(t.Part*float64(last)))
}

// forgive tells the checks if claims are lost.
func (w *world) forgive(t trouble) {
	if messaging.Stream(t.Of) == messaging.StreamClaim {
		w.check.forgive()
	}
}
