package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/internal/test/memetcd"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// patience is how long a study may go on without faults, in virtual time.
	patience = 20 * time.Minute
	// receipts is how long a result may wait for its receipt without faults.
	receipts = 5 * time.Minute
	// firstRevision is etcd's at the beginning. One that has lost everything begins at 1, so
	// its epochs stay below those that the broker has seen.
	firstRevision = 1_000_000
)

// world is one schedule: an etcd, a broker, coordinators, workers and their troubles.
type world struct {
	t    *testing.T
	seed uint64
	dir  string
	rng  *rand.Rand // of the processes and the studies, used by the schedule's goroutine only
	logs *logbook

	etcd         *memetcd.Server
	broker       *membus.Broker
	lease        time.Duration // of leaders
	workerLease  time.Duration
	coordinators []*replica
	workers      []*worker
	maxCommit    int // of the ledger
	studies      []*study.Study
	client       *memetcd.Client // meets no faults of messages
	observer     *ledger.Ledger
	check        *checker

	// script is what is played; nil if troubles are drawn, with a mean pause between them.
	script    *script
	troubles  *rand.Rand
	pause     time.Duration
	played    script         // so far
	saved     *saved         // the last backup; nil for none
	restoring atomic.Bool    // no coordinator may start
	callers   sync.WaitGroup // of the API; calling ends with hangUp
	calling   context.Context
	hangUp    context.CancelFunc
	watching  sync.WaitGroup // of the ledger; ends with unwatch
	unwatch   context.CancelFunc

	mu     sync.Mutex
	faulty bool           // messages may meet faults
	counts map[string]int // operations, by who does what
	armed  map[string]arm // who is killed at an operation
}

// newWorld draws a schedule's constants and starts its processes. A script may be nil.
func newWorld(t *testing.T, seed uint64, script *script, dir string) *world {
	w := &world{
		t: t, seed: seed, dir: dir, logs: &logbook{begun: time.Now()}, script: script,
		rng: rand.New(rand.NewPCG(seed, 2)), troubles: rand.New(rand.NewPCG(seed, 3)),
		counts: map[string]int{}, armed: map[string]arm{},
	}
	w.calling, w.hangUp = context.WithCancel(t.Context())
	w.played.head = head{
		Seed: seed, Faults: []float64{0, 0.01, 0.05, 0.15}[w.rng.IntN(4)], Delays: []float64{0, 0.05, 0.3}[w.rng.IntN(3)],
		Until: span(time.Duration(20+w.rng.IntN(160)) * time.Second),
	}
	if script != nil {
		w.played.head = script.head
	}
	w.pause = []time.Duration{2 * time.Second, 8 * time.Second, 30 * time.Second}[w.rng.IntN(3)]
	w.maxCommit = []int{0, 0, 1, 4}[w.rng.IntN(4)]
	w.lease = time.Duration(2+w.rng.IntN(5)) * time.Second
	w.workerLease = time.Duration(8+w.rng.IntN(13)) * time.Second
	w.check = newChecker(w)
	w.etcd = memetcd.New(memetcd.Options{Fault: w.etcdFault, Stored: w.check.stored, Revision: firstRevision})
	w.broker = membus.New(membus.Options{Fault: w.busFault})
	w.client = w.etcd.Client("observer")
	w.observer = ledger.New(w.client.Client, ledger.Options{})
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
	w.startWatching()
	for i := range 1 + w.rng.IntN(3) {
		s, later := w.newStudy(i)
		w.studies = append(w.studies, s)
		delay := time.Duration(w.rng.IntN(10)) * time.Second
		w.callers.Go(func() {
			time.Sleep(delay)
			w.create(w.calling, s)
			if later != nil {
				w.changeLimits(w.calling, later, i)
			}
		})
		for n := range w.rng.IntN(3) + 1 {
			if s.Spec.ByClients() {
				w.callers.Go(func() { w.evaluateByClient(w.calling, s, 10*i+n) })
			}
		}
	}
	w.trouble()
	w.awaitEnd()
	w.close()
}

// close ends all processes and checks what they leave.
func (w *world) close() {
	w.hangUp()
	w.callers.Wait()
	for _, k := range w.workers {
		k.stop()
	}
	for _, c := range w.coordinators {
		c.stop()
	}
	w.check.final(w.observer)
	w.stopWatching()
	_ = w.client.Close() // it always says that it was cancelled
}

// startWatching lets the checks follow the ledger.
func (w *world) startWatching() {
	ctx, stop := context.WithCancel(w.t.Context())
	w.unwatch = stop
	w.watching.Go(func() { w.check.follow(ctx, w.observer) })
	last, _ := w.etcd.Revision()
	w.watching.Go(func() { w.check.commits(ctx, w.client.Client, w.observer, last+1) })
}

func (w *world) stopWatching() {
	w.unwatch()
	w.watching.Wait()
}

func (w *world) coordinator(name string) *replica {
	for _, c := range w.coordinators {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (w *world) worker(name string) *worker {
	for _, k := range w.workers {
		if k.name == name {
			return k
		}
	}
	return nil
}

// awaitEnd waits until all studies have ended, and all results have their receipts.
func (w *world) awaitEnd() {
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
	for _, s := range w.studies {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		found, err := w.observer.Study(ctx, s.Metadata.Name)
		cancel()
		if err != nil || !found.Status.State.Terminal() {
			return false
		}
	}
	return true
}

// open names the studies that have not ended.
func (w *world) open() (open []string) {
	for _, defined := range w.studies {
		name := defined.Metadata.Name
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

// logFailure writes the log of a schedule that has failed.
func (w *world) logFailure() {
	text := w.logs.text()
	if !one() && len(text) > 4000 {
		text = "..." + text[len(text)-4000:]
	}
	w.t.Logf("seed %d: faults %g, delays %g, lease %v, %d coordinators, %d workers\n%s", w.seed, w.played.Faults, w.played.Delays, w.lease,
		len(w.coordinators), len(w.workers), text)
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
