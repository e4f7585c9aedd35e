package simulation

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/internal/test/memetcd"
)

// arm is a death at one of the next operations.
type arm struct {
	in   int           // operations
	last ending        // what becomes of the operation
	late time.Duration // of one that is late
	die  func()
}

// ending is what becomes of the operation at which a process dies.
type ending int

const (
	undone ending = iota // it has no effect
	done
	late // it has an effect later: only etcd knows these
)

var endings = [...]string{"undone", "done", "late"}

// MarshalText implements encoding.TextMarshaler.
func (e ending) MarshalText() ([]byte, error) { return []byte(endings[e]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *ending) UnmarshalText(text []byte) error {
	i := slices.Index(endings[:], string(text))
	if i < 0 {
		return fmt.Errorf("an operation ends %v, not %q", endings, text)
	}
	*e = ending(i)
	return nil
}

// draw returns a number in [0, 1) that only the seed and the words decide.
func (w *world) draw(words ...any) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, words)
	return rand.New(rand.NewPCG(h.Sum64(), w.seed)).Float64()
}

// count counts an operation, and says whether whoever does it dies of it: before or after.
func (w *world) count(who, op string) (n int, faulty bool, death *arm) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := who + "/" + op
	w.counts[key]++
	if a, ok := w.armed[who]; ok {
		if a.in--; a.in > 0 {
			w.armed[who] = a
		} else {
			delete(w.armed, who)
			death = &a
		}
	}
	return w.counts[key], w.faulty, death
}

// flip reports whether a message meets a fault that the words name.
func (w *world) flip(words ...any) bool {
	w.mu.Lock()
	faulty := w.faulty
	w.mu.Unlock()
	return faulty && w.draw(words...) < w.played.Faults
}

// carryOut carries out a death.
func (a *arm) carryOut() {
	if a.last == undone {
		a.die()
	} else {
		go a.die() // which would end the operation
	}
}

// etcdFault is what a request to etcd meets.
func (w *world) etcdFault(e memetcd.Event) (f memetcd.Fault) {
	n, faulty, death := w.count(e.Client, string(e.Op))
	if death != nil {
		death.carryOut()
		f.Lost, f.Unanswered = death.last == undone, death.last == done
		if death.last == late {
			f.Late = death.late
		}
		return f
	}
	if !faulty || e.Client == "observer" {
		return f
	}
	who := e.Client + "/" + string(e.Op)
	m := w.meet(who, n, 500*time.Millisecond)
	f.Delay, f.Lost, f.Unanswered = m.delay, m.lost, m.unanswered
	if m.special {
		f.Late = time.Duration(w.draw("late", who, n) * float64(10*time.Second))
	}
	return f
}

// busFault is what an operation on the bus meets.
func (w *world) busFault(e membus.Event) (f membus.Fault) {
	actor := e.Actor
	if e.Replica != "" {
		actor = e.Replica
	}
	n, faulty, death := w.count(actor, string(e.Op))
	if death != nil {
		death.carryOut()
		f.Lost, f.Unanswered = death.last == undone, death.last != undone
		return f
	}
	if !faulty {
		return f
	}
	m := w.meet(actor+"/"+string(e.Op), n, time.Second)
	f.Delay, f.Lost, f.Unanswered = m.delay, m.lost, m.unanswered
	if m.special {
		f.Copies = 1
	}
	return f
}

// met is what one operation meets. special is a fault of a kind that only etcd or only the
// bus has.
type met struct {
	delay                     time.Duration
	lost, unanswered, special bool
}

// meet draws what the n-th operation of a kind meets. A delay is at most longest, and now and
// then twenty times that.
func (w *world) meet(who string, n int, longest time.Duration) (m met) {
	if w.draw("slow", who, n) < w.played.Delays {
		m.delay = time.Duration(w.draw("delay", who, n) * float64(longest))
		if w.draw("very slow", who, n) < 0.05 {
			m.delay *= 20
		}
	}
	if w.draw("fault", who, n) < w.played.Faults {
		x := w.draw("kind", who, n)
		m.lost, m.unanswered, m.special = x < 0.4, x >= 0.4 && x < 0.8, x >= 0.8
	}
	return m
}
