package simulation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	fantasia "github.com/fantasia-hpo/fantasia/worker"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// worker is a worker, which runs, or will.
type worker struct {
	w     *world
	name  string
	slots int
	clock clock

	mu      sync.Mutex
	n       int // of its processes
	log     *process
	dir     string // of its files
	dirs    int
	bus     *membus.Worker
	crashed chan struct{} // closed when the process is killed
	cancel  context.CancelFunc
	done    chan struct{}
	halted  bool
	ended   sync.WaitGroup
}

func (k *worker) directory() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dir
}

// start starts a process, once the last one has ended.
func (k *worker) start() {
	k.mu.Lock()
	before, runs := k.done, k.cancel != nil
	k.mu.Unlock()
	if runs {
		return
	}
	if before != nil {
		<-before
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.halted || k.cancel != nil {
		return
	}
	k.n++
	bus, err := k.w.broker.Worker(k.name, study.DefaultPool)
	if err != nil {
		k.w.t.Error(err)
		return
	}
	crashed := make(chan struct{})
	o := fantasia.DefaultOptions()
	o.Name, o.Slots, o.GPUs, o.StateDir, o.Bus = k.name, k.slots, "none", k.dir, skewed{bus, &k.clock}
	k.log = &process{l: k.w.logs}
	o.Logger = k.log.logger(fmt.Sprint(k.name, "#", k.n))
	o.HeartbeatInterval = k.w.workerLease / 4
	o.NewEvaluator = func(int) (evaluation.Evaluator, error) {
		return program{func(ctx context.Context, p study.Point, task evaluation.Task) (float64, error) {
			return k.w.evaluate(ctx, crashed, k.name, p, task)
		}}, nil
	}
	process, err := fantasia.New(o)
	if err != nil {
		k.w.t.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.bus, k.crashed, k.cancel, k.done = bus, crashed, cancel, make(chan struct{})
	done := k.done
	k.ended.Go(func() {
		defer close(done)
		err := process.Run(ctx)
		if err != nil && ctx.Err() == nil && !closed(crashed) {
			k.w.check.fail("%s has ended: %v", k.name, err)
		}
		_ = bus.Close()
	})
}

// kill ends the process at once: nothing that it does from now on has an effect.
func (k *worker) kill(lost bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cancel == nil {
		return
	}
	k.log.dead.Store(true)
	close(k.crashed)
	k.dirs++
	dir := filepath.Join(filepath.Dir(k.dir), fmt.Sprint(k.dirs))
	if !lost {
		// What the process still writes while it ends goes to the old directory.
		if err := copyFiles(dir, k.dir); err != nil {
			k.w.t.Error(err)
		}
	}
	k.dir = dir
	_ = k.bus.Close()
	k.cancel()
	k.cancel, k.done = nil, nil
}

// copyFiles copies a directory, anew whenever its owner has removed a file meanwhile.
func copyFiles(to, from string) error {
	for {
		err := os.CopyFS(to, os.DirFS(from))
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.RemoveAll(to); err != nil {
			return err
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// end asks the process to end: it hands its attempts back.
func (k *worker) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cancel != nil {
		k.cancel()
		k.cancel = nil
	}
}

func (k *worker) restart(after span) { time.AfterFunc(time.Duration(after), k.start) }

func (k *worker) cut(cut bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bus.Cut(cut)
}

// heal ends what ails the worker.
func (k *worker) heal() {
	k.cut(false)
	k.start()
}

// stop ends the worker for good.
func (k *worker) stop() {
	k.mu.Lock()
	k.halted = true
	k.mu.Unlock()
	k.end()
	k.ended.Wait()
}

// evaluate is the program of all studies: it takes a while, reports now and then, and ends
// as the seed wants it.
func (w *world) evaluate(ctx context.Context, crashed <-chan struct{}, who string, _ study.Point, task evaluation.Task) (float64, error) {
	a := task.Assignment
	id := a.AttemptID
	w.check.begin(who, id)
	steps := 1 + int(w.draw("steps", a.StudyName, id.Trial, id.Attempt)*6)
	each := time.Duration(w.draw("time", a.StudyName, id.Trial) * float64(4*time.Second))
	value := w.draw("value", a.StudyName, id.Trial, id.Attempt)
	for step := range steps {
		select {
		case <-time.After(each):
		case <-crashed:
			return 0, errCrashed
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if step < steps-1 {
			task.Measure(int64(step), metricsOf(a.Objectives(), value+1/float64(step+1)))
		}
	}
	if closed(crashed) {
		return 0, errCrashed
	}
	switch x := w.draw("end", a.StudyName, id.Trial, id.Attempt); {
	case x < 0.1:
		return 0, errors.New("the program has failed")
	case x < 0.15 && a.Parameters[fidelity] == nil:
		return math.NaN(), nil
	}
	w.check.found(id, value)
	return value, nil
}

// name is how an attempt is written.
func name(id messaging.AttemptID) string {
	return fmt.Sprintf("%s/%d/%d (%s)", id.Study, id.Trial, id.Attempt, id.Nonce)
}
