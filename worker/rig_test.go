package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// helperVariable makes the test binary be a program instead of a test.
const helperVariable = "WORKER_TEST_HELPER"

func TestMain(m *testing.M) {
	if helper := os.Getenv(helperVariable); helper != "" {
		helpers[helper]()
		return
	}
	goleak.VerifyTestMain(m)
}

// rig is a worker on a bus in memory, and a leader that notes what it is told.
type rig struct {
	t       testing.TB
	broker  *membus.Broker
	leader  *membus.Leader
	options Options

	mu      sync.Mutex
	changed *sync.Cond
	heard
	silent bool // sends no receipts
}

// heard is what the leader was told, in order.
type heard struct {
	claims   []*messaging.Claim
	results  []*messaging.Result
	beats    []messaging.Heartbeat
	measured []messaging.Measurement
}

func (h heard) lastBeat() messaging.Heartbeat { return h.beats[len(h.beats)-1] }

// seen returns what the leader was told until now.
func (r *rig) seen() heard {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}

const (
	testPool   = "pool"
	testWorker = "tester"
)

// newRig starts the leader. evaluate may be nil, for programs.
func newRig(t testing.TB, evaluate evaluation.Func, o membus.Options) *rig {
	t.Helper()
	r := &rig{t: t, broker: membus.New(o)}
	r.changed = sync.NewCond(&r.mu)
	r.leader = r.broker.Leader()
	ctx := t.Context()
	if err := errors.Join(r.leader.Setup(ctx, []string{testPool}), r.leader.Fence(ctx, 1)); err != nil {
		t.Fatal(err)
	}
	r.options = DefaultOptions()
	r.options.Name, r.options.Pool, r.options.StateDir = testWorker, testPool, t.TempDir()
	if evaluate != nil {
		r.options.NewEvaluator = func(int) (evaluation.Evaluator, error) { return evaluate, nil }
	}
	r.lead()
	return r
}

// lead reads what workers say until the test ends.
func (r *rig) lead() {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	r.t.Cleanup(func() {
		cancel()
		group.Wait()
		if err := r.leader.Close(); err != nil {
			r.t.Error(err)
		}
	})
	for _, s := range []messaging.Stream{messaging.StreamClaim, messaging.StreamResult, messaging.StreamMetric} {
		reader, err := r.leader.Read(ctx, s, messaging.Cursor{})
		if err != nil {
			r.t.Fatal(err)
		}
		group.Go(func() {
			defer reader.Close()
			for {
				entry, err := reader.Next(ctx)
				if err != nil {
					return
				}
				r.note(ctx, entry)
			}
		})
	}
	beats, err := r.leader.Heartbeats(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	group.Go(func() {
		for b := range beats {
			r.change(func() { r.beats = append(r.beats, b) })
		}
	})
}

func (r *rig) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	r.changed.Broadcast()
}

func (r *rig) note(ctx context.Context, e messaging.Entry) {
	silent := false
	r.change(func() {
		silent = r.silent
		if e.Claim != nil {
			r.claims = append(r.claims, e.Claim)
		} else if e.Result != nil {
			r.results = append(r.results, e.Result)
		} else if e.Measurement != nil {
			r.measured = append(r.measured, *e.Measurement)
		} else {
			r.t.Errorf("the leader cannot read %s: %v", e.Subject, e.Err)
		}
	})
	if e.Result != nil && !silent {
		r.control(ctx, messaging.ControlReceipt, e.Result.Worker, e.Result.AttemptID)
	}
}

func (r *rig) control(ctx context.Context, kind messaging.ControlKind, worker string, id messaging.AttemptID) {
	r.t.Helper()
	err := r.leader.Control(ctx, &messaging.Control{Version: messaging.SchemaVersion, Kind: kind, Worker: worker, AttemptID: id})
	if err != nil && ctx.Err() == nil {
		r.t.Error(err)
	}
}

// until waits for a condition on what the leader was told; a minute is for ever.
func (r *rig) until(what string, condition func() bool) {
	r.t.Helper()
	late := false
	timer := time.AfterFunc(time.Minute, func() { r.change(func() { late = true }) })
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !condition() {
		if late {
			r.t.Fatalf("waited in vain: %s", what)
		}
		r.changed.Wait()
	}
}

// start runs the worker and returns what makes it leave; it leaves at the end
// of the test otherwise.
func (r *rig) start() (leave func()) {
	r.t.Helper()
	wait, cancel := r.run(r.options)
	leave = sync.OnceFunc(func() {
		cancel()
		if err := wait(); err != nil {
			r.t.Errorf("Run: %v", err)
		}
	})
	r.t.Cleanup(leave)
	return leave
}

// run runs a worker until cancel is called; wait returns what Run did.
func (r *rig) run(o Options) (wait func() error, cancel func()) {
	r.t.Helper()
	bus, err := r.broker.Worker(o.Name, testPool)
	if err != nil {
		r.t.Fatal(err)
	}
	o.Bus = bus
	w, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- errors.Join(w.Run(ctx), bus.Close()) }()
	return func() error { return <-done }, cancel
}

// offer publishes assignments.
func (r *rig) offer(as ...*messaging.Assignment) {
	r.t.Helper()
	if err := r.leader.Assign(r.t.Context(), as); err != nil {
		r.t.Fatal(err)
	}
}

// spooled returns the names of the files in the spool.
func (r *rig) spooled() []string {
	r.t.Helper()
	paths, err := filepath.Glob(filepath.Join(spoolDir(r.options.StateDir), "*.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	return paths
}

// told returns how often the leader read a trial's result, of each outcome.
func (r *rig) told(trial int) map[messaging.Outcome]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.toldLocked(trial)
}

func (r *rig) toldLocked(trial int) map[messaging.Outcome]int {
	n := map[messaging.Outcome]int{}
	for _, result := range r.results {
		if result.Trial == trial {
			n[result.Outcome]++
		}
	}
	return n
}

func (r *rig) untilTold(trial int) {
	r.t.Helper()
	r.until(fmt.Sprintf("a result of trial %d", trial), func() bool { return len(r.toldLocked(trial)) > 0 })
}

// assigned is an assignment of a trial that a Go function evaluates.
func assigned(trial int) *messaging.Assignment {
	return &messaging.Assignment{
		Version:   messaging.SchemaVersion,
		AttemptID: messaging.AttemptID{Study: "study-id", Trial: trial, Attempt: 1, Nonce: fmt.Sprintf("nonce-%d", trial)},
		Pool:      testPool, StudyName: "study", Seed: 1,
		Parameters: study.Point{"x": float64(trial)}, ParameterOrder: []string{"x"},
		Objective: study.Objective{Metric: "error", Direction: study.Minimize},
		Run:       study.TrialTemplate{Command: []string{"true"}, Mode: study.ModeProcess, Grace: study.Duration(time.Second)},
	}
}

// calls counts evaluations of each trial.
type calls struct {
	mu sync.Mutex
	n  map[int]int
}

func (c *calls) add(trial int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[int]int{}
	}
	c.n[trial]++
	return c.n[trial]
}

func (c *calls) of(trial int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[trial]
}

// square counts calls and returns the square of x.
func (c *calls) square(_ context.Context, p study.Point, task evaluation.Task) (float64, error) {
	c.add(task.Assignment.Trial)
	x := p["x"].(float64)
	return x * x, nil
}

func sameTrials(ids []messaging.AttemptID, trials ...int) bool {
	var got []int
	for _, id := range ids {
		got = append(got, id.Trial)
	}
	slices.Sort(got)
	return slices.Equal(got, trials)
}
