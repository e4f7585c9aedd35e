package engine

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/judge"
	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// The simulator runs an engine in a world of its own: a ledger, two streams, a
// work queue, workers, an optimiser and a leader that dies at any moment. All
// of it follows from one seed. Whatever the world does to messages, processes
// and time, the invariants of simcheck_test.go hold after every commit; and
// once the faults stop, the study ends.

// world is one simulated schedule.
type world struct {
	seed   uint64
	rng    *rand.Rand
	now    time.Time
	agenda agenda
	seq    int
	faults bool
	judged bool // a model decides which trials are stopped early
	costly bool // evaluations have a cost: see charged

	// The durable part: what survives the leader.
	led           *ledger
	claims        []simClaim
	holder        map[messaging.AttemptID]string // who holds a subject of the claim stream
	results       []*messaging.Result
	metrics       []*messaging.Measurement
	claim, result int // committed cursors
	metric        int
	queue, sent   []*messaging.Assignment // what waits for a worker, and all that ever did
	maxTrials     int
	objectives    []study.Objective                     // in the order of every trial's values
	limits        *rand.Rand                            // the source of limits; nil if there are none
	reported      map[report][]float64                  // all that was ever found
	measured      map[messaging.AttemptID][]curve.Point // what programs reported, as it was stored first
	measurers     map[messaging.AttemptID]string        // who reported it, "?" for several
	ended         map[messaging.AttemptID]bool          // which attempts any worker has ended
	set           Settings
	off           safety
	workers       []*simWorker
	clients       []*simClient                      // instead of workers if the study has no command
	heard         map[messaging.AttemptID]time.Time // when clients were heard about what they hold
	incarnations  int
	started       time.Time // of the leader now

	// The leader.
	e     *Engine
	gen   int // of the leader: what an older one planned is void
	asked *Ask
	beats map[string]beat
	// uncommitted are the curves that wait for the next commit, since uncommittedSince, read how far
	// the leader has read the reports.
	uncommitted      []curve.Change
	uncommittedSince time.Time
	read             int

	check checker
}

// simClaim is a message of the claim stream. Of an unreadable one the leader knows
// only what its subject says: the attempt, without a nonce.
type simClaim struct {
	*messaging.Claim
	unreadable bool
}

// report names what a worker found in an attempt.
type report struct {
	worker string
	id     messaging.AttemptID
}

// beat is a worker's last heartbeat.
type beat struct {
	at          time.Time
	knows       map[messaging.AttemptID]bool
	slots, free int
}

// The times of the simulated world.
const (
	simLease     = 3 * time.Second
	simHeartbeat = time.Second
	simResend    = 700 * time.Millisecond
	simTick      = 100 * time.Millisecond
	simGroup     = time.Second
	// simLimit is the loss above which a study that stops trials early stops one.
	simLimit = 0.9
	// simPatience is how long a study may go on without faults: 30 trials of
	// at most 1.5 s, their retries, leases and the last heartbeats.
	simPatience = 5 * time.Minute
)

// errViolation is what a broken invariant is reported as.
var errViolation = errors.New("an invariant is broken")

// newWorld draws a study, its workers and its troubles from a seed.
func newWorld(seed uint64, off safety) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	points := 0
	if rng.IntN(3) == 0 {
		points = 2 + rng.IntN(20)
	}
	spec := newSpec(points, 1+rng.IntN(20), 1+rng.IntN(6))
	s := &spec.Definition.Spec
	pick := func(n int) *int { v := rng.IntN(n); return &v }
	s.Trial.Retries = study.Retries{Lost: pick(4), Timeout: pick(2), Failed: pick(3)}
	if rng.IntN(4) == 0 {
		s.Budget.MaxFailedTrials = 1 + rng.IntN(5)
	}
	if rng.IntN(6) == 0 {
		goal := rng.Float64() * 0.1
		s.Objective.Goal = &goal
	}
	if rng.IntN(8) == 0 {
		s.Budget.MaxDuration = study.Duration(time.Duration(1+rng.IntN(60)) * time.Second)
	}
	w := &world{
		seed: seed, rng: rng, now: epoch, faults: true, off: off,
		led: newLedger(spec), holder: map[messaging.AttemptID]string{},
		maxTrials: s.Budget.MaxTrials, reported: map[report][]float64{},
		measured: map[messaging.AttemptID][]curve.Point{}, measurers: map[messaging.AttemptID]string{},
		ended: map[messaging.AttemptID]bool{},
		set:   Settings{Republish: 4 * time.Second},
		beats: map[string]beat{},
		check: newChecker(),
	}
	if rng.IntN(4) > 0 {
		w.set.Fallback = true
	}
	if rng.IntN(2) == 0 {
		limited(&spec, &w.set, simLimit)
		if w.judged = seed%3 == 0; w.judged {
			w.set.Pruner = func(study.EarlyStopping, study.Direction) (pruner.Pruner, error) { return asking{limit(simLimit)}, nil }
		}
		w.led = newLedger(spec)
	}
	w.drawObjectives()
	w.drawLimits()
	for i := range 1 + rng.IntN(4) {
		w.workers = append(w.workers, newSimWorker(w, i))
	}
	return w
}

// newAnyWorld draws a study of workers or, for one seed in three, of clients.
func newAnyWorld(seed uint64, off safety) *world {
	if seed%3 == 0 {
		return newClientWorld(seed, off)
	}
	return newWorld(seed, off)
}

// edit changes the study of a world that has not begun.
func (w *world) edit(change func(*study.Spec)) {
	var spec record.Study
	decode(w.led.study, &spec)
	change(&spec.Definition.Spec)
	w.led = newLedger(spec)
}

// run plays the schedule: a time of faults, then a time without.
func (w *world) run() error {
	w.start()
	for _, worker := range w.workers {
		worker.begin()
	}
	for _, client := range w.clients {
		client.begin()
	}
	w.troubles()
	w.until(w.now.Add(time.Duration(5+w.rng.IntN(40)) * time.Second))
	w.faults = false
	for _, worker := range w.workers {
		worker.heal()
	}
	w.awaitRest()
	for range 2 { // trials are continued that were stopped early, which a study does after its end too
		if w.check.err == nil && w.e != nil {
			w.goOn("")
			if w.until(w.now.Add(w.between(0, time.Second))); w.chance(2) {
				w.crash()
			}
			w.awaitRest()
		}
	}
	if len(w.clients) == 0 {
		w.check.curves(w)
	}
	w.check.front(w)
	w.check.confirmed(w)
	if w.check.err != nil {
		return fmt.Errorf("seed %d at %v: %w", w.seed, w.now.Sub(epoch), w.check.err)
	}
	return nil
}

// awaitRest waits until the study is at rest, which it must be soon.
func (w *world) awaitRest() {
	end := w.now.Add(simPatience)
	for w.check.err == nil && !w.atRest() && w.now.Before(end) {
		w.until(w.now.Add(time.Second))
	}
	if w.check.err == nil && !w.atRest() {
		w.check.fail("%v without faults, and the study is not at rest: %s", simPatience, describeStatus(w.status()))
	}
}

// atRest reports whether the study has ended and every worker has heard of it.
func (w *world) atRest() bool {
	if w.e == nil || w.e.running() {
		return false
	}
	if w.metric < len(w.metrics) {
		return false
	}
	for _, worker := range w.workers {
		if len(worker.running) > 0 || len(worker.spool) > 0 || len(worker.measured) > 0 {
			return false
		}
	}
	return true
}

// status is the committed status.
func (w *world) status() record.Status {
	var s record.Status
	decode(w.led.status, &s)
	return s
}

// append adds a claim to the stream, which refuses a second one of a subject.
func (w *world) append(c *messaging.Claim) bool {
	subject := c.AttemptID
	subject.Nonce = ""
	if _, claimed := w.holder[subject]; claimed {
		return false
	}
	w.holder[subject] = c.Worker
	w.claims = append(w.claims, simClaim{Claim: c})
	w.arrived()
	return true
}

// arrived lets the leader read its streams, in a while.
func (w *world) arrived() {
	w.after(w.between(0, 40*time.Millisecond), func() {
		if w.readNext() && len(w.claims)-w.claim+len(w.results)-w.result+len(w.metrics)-w.read > 0 {
			w.arrived() // it lags behind
		}
	})
}

// judge answers a question of the engine: the model is a limit.
func (w *world) judge(gen int, asked *Judge) {
	if asked == nil {
		return
	}
	w.after(w.between(0, 400*time.Millisecond), func() {
		if gen != w.gen || w.e == nil {
			return
		}
		ev := Judged{At: w.now, Judge: asked, Answer: judge.Answer{Stop: true, Reason: "above the limit", Cost: 2 * simLimit}}
		if w.faults && w.chance(10) {
			ev = Judged{At: w.now, Judge: asked, Err: errors.New("simulated: singular matrix")}
		}
		w.step(ev)
	})
}

// optimise answers a request some time later: with points, fewer of them, ones
// that are none, or with an error.
func (w *world) optimise(gen int, ask *Ask) {
	w.after(w.between(0, 400*time.Millisecond), func() {
		if gen != w.gen || w.e == nil {
			return
		}
		ev := Suggested{At: w.now, Ask: ask, State: stateOf(ask.Problem.Space)}
		switch {
		case w.faults && w.chance(10):
			ev.Err = errors.New("simulated: singular matrix")
		default:
			ev.Suggestions = w.points(ask)
			if len(ev.Suggestions) == 0 {
				ev.Err = optimizer.ErrExhausted
			}
			w.timed(&ev)
			w.priced(&ev)
			w.forecast(&ev)
		}
		if w.asked == ask {
			w.asked = nil
		}
		w.step(ev)
	})
}

// points suggests points that are neither observed nor pending; with faults,
// also some that are.
func (w *world) points(ask *Ask) []optimizer.Suggestion {
	p := ask.Problem
	q := p.Space.Parameters()[0]
	if q.Type == study.Float {
		list := make([]optimizer.Suggestion, ask.N)
		for i := range list {
			x := *q.Min + w.rng.Float64()*(*q.Max-*q.Min)
			if w.faults && w.chance(30) {
				x += *q.Max
			}
			list[i] = optimizer.Suggestion{Point: study.Point{q.Name: x}, Source: optimizer.SourceModel}
		}
		return list
	}
	list, err := gridFallback(p, ask.N)
	if err != nil {
		return nil
	}
	for i := range list {
		if list[i].Source = optimizer.SourceModel; w.faults && w.chance(10) {
			list[i].Point = study.Point{q.Name: int64(1 + w.rng.IntN(int(*q.Max)))}
		}
	}
	return list
}

// stateOf is the state of an optimiser that has seen a space.
func stateOf(s *space.Space) optimizer.State {
	q := s.Parameters()[0]
	return optimizer.State(fmt.Sprintf("%g to %g", *q.Min, *q.Max))
}

// after and at plan an action.
func (w *world) after(d time.Duration, act func()) { w.at(w.now.Add(d), act) }

func (w *world) at(t time.Time, act func()) {
	w.seq++
	heap.Push(&w.agenda, plan{t, w.seq, act})
}

// until lets the world go on to a time, or to the first violation.
func (w *world) until(t time.Time) {
	for w.check.err == nil && len(w.agenda) > 0 && !w.agenda[0].at.After(t) {
		p := heap.Pop(&w.agenda).(plan)
		if p.at.After(w.now) {
			w.now = p.at
		}
		p.act()
	}
	w.now = t
}

// chance is true once in n.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

// between draws a duration.
func (w *world) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.rng.Int64N(int64(hi-lo)))
}

// plan is an action to come; agenda orders them by time, and then as planned.
type plan struct {
	at  time.Time
	seq int
	act func()
}

type agenda []plan

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if a[i].at.Equal(a[j].at) {
		return a[i].seq < a[j].seq
	}
	return a[i].at.Before(a[j].at)
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(plan)) }
func (a *agenda) Pop() any {
	old := *a
	p := old[len(old)-1]
	*a = old[:len(old)-1]
	return p
}
