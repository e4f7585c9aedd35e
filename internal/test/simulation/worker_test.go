package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/membus"
	"github.com/fantasia-hpo/fantasia/study"
	fantasia "github.com/fantasia-hpo/fantasia/worker"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// worker is a worker, which runs, or will.
type worker struct {
	w     *world
	name  string
	slots int

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
	o.Name, o.Slots, o.GPUs, o.StateDir, o.Bus = k.name, k.slots, "none", k.dir, bus
	k.log = &process{l: k.w.logs}
	o.Logger = k.log.logger(fmt.Sprint(k.name, "#", k.n))
	o.HeartbeatInterval = k.w.workerLease / 4
	o.NewEvaluator = func(int) (evaluation.Evaluator, error) {
		return evaluation.Func(func(ctx context.Context, p study.Point, task evaluation.Task) (float64, error) {
			return k.w.evaluate(ctx, crashed, k.name, p, task)
		}), nil
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
		if err != nil && ctx.Err() == nil {
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
		if err := os.CopyFS(dir, os.DirFS(k.dir)); err != nil {
			k.w.t.Error(err)
		}
	}
	k.dir = dir
	_ = k.bus.Close()
	k.cancel()
	k.cancel, k.done = nil, nil
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

func (k *worker) restart(after time.Duration) { time.AfterFunc(after, k.start) }

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
			task.Measure(int64(step), map[string]float64{a.Objective.Metric: value + 1/float64(step+1)})
		}
	}
	select {
	case <-crashed:
		return 0, errCrashed
	default:
	}
	switch x := w.draw("end", a.StudyName, id.Trial, id.Attempt); {
	case x < 0.1:
		return 0, errors.New("the program has failed")
	case x < 0.15:
		return math.NaN(), nil
	}
	w.check.found(id, value)
	return value, nil
}

// newStudy draws a study.
func (w *world) newStudy(i int) *study.Study {
	algorithm := []string{"random", "sobol", "tpe", "cmaes"}[w.rng.IntN(4)]
	spec := map[string]any{
		"objective":   map[string]any{"metric": "loss", "direction": "minimize"},
		"parameters":  []any{map[string]any{"name": "x", "type": "float", "min": -1, "max": 1}, map[string]any{"name": "y", "type": "float", "min": 0, "max": 9}},
		"algorithm":   map[string]any{"name": algorithm, "seed": w.rng.IntN(1000)},
		"budget":      map[string]any{"maxTrials": 5 + w.rng.IntN(31)},
		"parallelism": 1 + w.rng.IntN(5),
		"trial": map[string]any{
			"command": []any{"program"},
			"retries": map[string]any{"lost": w.rng.IntN(4), "failed": w.rng.IntN(3)},
		},
	}
	if w.rng.IntN(3) == 0 {
		spec["earlyStopping"] = map[string]any{"name": "median"}
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": study.APIVersion, "kind": study.Kind, "metadata": map[string]any{"name": fmt.Sprint("study-", i)}, "spec": spec,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := inject.ParseStudy("study.json", raw)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// create asks whoever leads for a study, until it is there.
func (w *world) create(ctx context.Context, s *study.Study) {
	for n := 0; ; n++ {
		c := w.coordinators[n%len(w.coordinators)].running()
		if c == nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := c.Create(call, s)
		cancel()
		switch {
		case err == nil || errors.Is(err, ledger.ErrNameTaken):
			return
		case !errors.Is(err, coordinator.ErrNotLeader):
			w.logs.note("create: " + err.Error())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// name is how an attempt is written.
func name(id messaging.AttemptID) string {
	return fmt.Sprintf("%s/%d/%d (%s)", id.Study, id.Trial, id.Attempt, id.Nonce)
}
