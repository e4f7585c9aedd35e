package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/test/memetcd"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/membus"
)

const (
	// patience is how long a study may go on without faults, in virtual time.
	patience = 20 * time.Minute
	// receipts is how long a result may wait for its receipt without faults.
	receipts = 5 * time.Minute
)

// world is one schedule: an etcd, a broker, coordinators, workers and their troubles.
type world struct {
	t    *testing.T
	seed uint64
	dir  string
	rng  *rand.Rand // of the schedule, used by its goroutine only
	logs *logbook

	etcd         *memetcd.Server
	broker       *membus.Broker
	lease        time.Duration // of leaders
	workerLease  time.Duration
	coordinators []*replica
	workers      []*worker
	studies      []string        // names
	client       *memetcd.Client // meets no faults of messages
	observer     *ledger.Ledger
	check        *checker

	mu     sync.Mutex
	faulty bool           // messages may meet faults
	rate   float64        // of faults
	slow   float64        // of delays
	counts map[string]int // operations, by who does what
	armed  map[string]arm // who is killed at an operation
}

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

// newWorld draws a schedule's constants and starts its processes.
func newWorld(t *testing.T, seed uint64, dir string) *world {
	w := &world{
		t: t, seed: seed, dir: dir, rng: rand.New(rand.NewPCG(seed, 2)), logs: &logbook{begun: time.Now()},
		counts: map[string]int{}, armed: map[string]arm{},
	}
	w.rate = []float64{0, 0.01, 0.05, 0.15}[w.rng.IntN(4)]
	w.slow = []float64{0, 0.05, 0.3}[w.rng.IntN(3)]
	w.lease = time.Duration(2+w.rng.IntN(5)) * time.Second
	w.workerLease = time.Duration(8+w.rng.IntN(13)) * time.Second
	w.etcd = memetcd.New(memetcd.Options{Fault: w.etcdFault})
	w.broker = membus.New(membus.Options{Fault: w.busFault})
	w.client = w.etcd.Client("observer")
	w.observer = ledger.New(w.client.Client, ledger.Options{})
	w.check = newChecker(w)
	for i := range 2 + w.rng.IntN(2) {
		c := &replica{w: w, name: fmt.Sprint("coordinator-", i)}
		w.coordinators = append(w.coordinators, c)
		c.start()
	}
	for i := range 2 + w.rng.IntN(3) {
		k := &worker{w: w, name: fmt.Sprint("worker-", i), slots: 1 + w.rng.IntN(3)}
		k.dir = filepath.Join(dir, k.name, "0")
		w.workers = append(w.workers, k)
		k.start()
	}
	return w
}

// run plays the schedule: troubles for a while, and then the end of all studies.
func (w *world) run() {
	defer w.client.Close()
	ctx, stop := context.WithCancel(w.t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { w.check.follow(ctx, w.observer) })
	watching.Go(func() { w.check.commits(ctx, w.client.Client, w.observer) })
	var creating sync.WaitGroup
	for i := range 1 + w.rng.IntN(3) {
		s := w.newStudy(i)
		w.studies = append(w.studies, s.Metadata.Name)
		delay := time.Duration(w.rng.IntN(10)) * time.Second
		creating.Go(func() {
			time.Sleep(delay)
			w.create(ctx, s)
		})
	}
	w.trouble(time.Duration(20+w.rng.IntN(160)) * time.Second)
	creating.Wait()
	w.settle()
	for _, k := range w.workers {
		k.stop()
	}
	for _, c := range w.coordinators {
		c.stop()
	}
	w.check.final(w.observer)
	stop()
	watching.Wait()
}

// settle waits until all studies have ended, and all results have their receipts.
func (w *world) settle() {
	for end := time.Now().Add(patience); ; time.Sleep(time.Second) {
		open := w.open()
		if len(open) == 0 {
			break
		}
		if time.Now().After(end) {
			w.check.fail("not ended %v after the last fault: %s", patience, strings.Join(open, "; "))
			return
		}
	}
	for end := time.Now().Add(receipts); ; time.Sleep(time.Second) {
		left := w.spooled()
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			w.check.fail("without a receipt %v after the end: %s", receipts, strings.Join(left, ", "))
			return
		}
	}
}

// quiet reports whether all studies have ended, so that more faults would hit nothing.
func (w *world) quiet() bool {
	for _, name := range w.studies {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		s, err := w.observer.Study(ctx, name)
		cancel()
		if err != nil || !s.Status.State.Terminal() {
			return false
		}
	}
	return true
}

// open names the studies that have not ended.
func (w *world) open() (open []string) {
	for _, name := range w.studies {
		s, err := w.observer.Study(w.t.Context(), name)
		if err != nil {
			open = append(open, err.Error())
		} else if !s.Status.State.Terminal() {
			open = append(open, fmt.Sprintf("%s is %s (%s) with %+v", name, s.Status.State, s.Status.Reason, s.Status.Counts))
		}
	}
	return open
}

// spooled names the results on the workers' disks.
func (w *world) spooled() (left []string) {
	for _, k := range w.workers {
		files, err := filepath.Glob(filepath.Join(k.directory(), "spool", "*.json"))
		if err != nil {
			w.t.Fatal(err)
		}
		left = append(left, files...)
	}
	return left
}

// tell writes the log of a schedule that has failed.
func (w *world) tell() {
	text := w.logs.text()
	if *simSeed == 0 && len(text) > 4000 {
		text = "..." + text[len(text)-4000:]
	}
	w.t.Logf("seed %d: faults %g, delays %g, lease %v, %d coordinators, %d workers\n%s", w.seed, w.rate, w.slow, w.lease, len(w.coordinators), len(w.workers), text)
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

// carryOut carries out a death.
func (a *arm) carryOut() {
	if a.last == undone {
		a.die()
	} else {
		go a.die() // which would end the operation
	}
}

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
	if w.draw("slow", who, n) < w.slow {
		f.Delay = time.Duration(w.draw("delay", who, n) * float64(500*time.Millisecond))
		if w.draw("very slow", who, n) < 0.05 {
			f.Delay *= 20
		}
	}
	if w.draw("fault", who, n) < w.rate {
		switch x := w.draw("kind", who, n); {
		case x < 0.4:
			f.Lost = true
		case x < 0.8:
			f.Unanswered = true
		default:
			f.Late = time.Duration(w.draw("late", who, n) * float64(10*time.Second))
		}
	}
	return f
}

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
	who := actor + "/" + string(e.Op)
	if w.draw("slow", who, n) < w.slow {
		f.Delay = time.Duration(w.draw("delay", who, n) * float64(time.Second))
		if w.draw("very slow", who, n) < 0.05 {
			f.Delay *= 20
		}
	}
	if w.draw("fault", who, n) < w.rate {
		switch x := w.draw("kind", who, n); {
		case x < 0.4:
			f.Lost = true
		case x < 0.8:
			f.Unanswered = true
		default:
			f.Copies = 1
		}
	}
	return f
}

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

// replica is a coordinator, which runs, or will.
type replica struct {
	w    *world
	name string

	mu     sync.Mutex
	n      int // of its processes
	log    *process
	c      *coordinator.Coordinator
	etcd   *memetcd.Client
	bus    *membus.Leader
	cancel context.CancelFunc
	done   chan struct{}
	halted bool // it is not started again
	ended  sync.WaitGroup
}

// start starts a process.
func (r *replica) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halted || r.cancel != nil {
		return
	}
	r.n++
	etcd, bus := r.w.etcd.Client(r.name), r.w.broker.Replica(r.name)
	o := inject.Coordinator(coordinator.DefaultOptions())
	o.Name, o.Advertise, o.Etcd, o.Bus = r.name, r.name, etcd.Client, bus
	o.LeaseTTL, o.WorkerLease = r.w.lease, r.w.workerLease
	r.log = &process{l: r.w.logs}
	o.Logger = r.log.logger(fmt.Sprint(r.name, "#", r.n))
	c, err := coordinator.New(o)
	if err != nil {
		r.w.t.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.c, r.etcd, r.bus, r.cancel, r.done = c, etcd, bus, cancel, make(chan struct{})
	done := r.done
	r.ended.Go(func() {
		defer close(done)
		if err := c.Run(ctx); err != nil {
			r.w.check.fail("%s has ended: %v", r.name, err)
		}
		_ = bus.Close()
		_ = etcd.Close()
	})
}

// running returns the coordinator; nil if none runs.
func (r *replica) running() *coordinator.Coordinator {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel == nil {
		return nil
	}
	return r.c
}

// kill ends the process at once: nothing that it does from now on has an effect.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel == nil {
		return
	}
	r.log.dead.Store(true)
	r.etcd.Kill()
	_ = r.bus.Close()
	r.cancel()
	r.cancel = nil
}

// end asks the process to end, which then resigns.
func (r *replica) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil {
		r.cancel()
		r.cancel = nil
	}
}

func (r *replica) restart(after time.Duration) { time.AfterFunc(after, r.start) }

func (r *replica) cut(etcd, bus bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.etcd.Cut(etcd)
	r.bus.Cut(bus)
}

func (r *replica) join() { r.cut(false, false) }

// heal ends what ails the replica.
func (r *replica) heal() {
	r.join()
	r.start()
}

// stop ends the replica for good.
func (r *replica) stop() {
	r.mu.Lock()
	r.halted = true
	r.mu.Unlock()
	r.end()
	r.ended.Wait()
}

// logbook collects the logs of all processes.
type logbook struct {
	begun time.Time

	mu  sync.Mutex
	out bytes.Buffer
}

// Write implements io.Writer.
func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *logbook) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// note logs something about the world.
func (l *logbook) note(text string) { fmt.Fprintf(l, "%v ==> %s\n", time.Since(l.begun), text) }

// process is the log of a process: once it was killed, it says nothing.
type process struct {
	l    *logbook
	dead atomic.Bool
}

// Write implements io.Writer.
func (p *process) Write(text []byte) (int, error) {
	if p.dead.Load() {
		return len(text), nil
	}
	return p.l.Write(text)
}

// logger is the logger of the process.
func (p *process) logger(name string) *slog.Logger {
	level := slog.LevelInfo
	if *simSeed != 0 {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(p, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.String(slog.TimeKey, a.Value.Time().Sub(p.l.begun).String())
		}
		return a
	}})).With("of", name)
}

// stateDir returns a directory for the workers' files, in memory where there is one.
func stateDir(t *testing.T) string {
	t.Helper()
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		dir, err := os.MkdirTemp("/dev/shm", "simulation-")
		if err == nil {
			t.Cleanup(func() {
				if err := os.RemoveAll(dir); err != nil {
					t.Error(err)
				}
			})
			return dir
		}
	}
	return t.TempDir()
}

// errCrashed is what a program of a killed worker ends with.
var errCrashed = errors.New("the process was killed")
