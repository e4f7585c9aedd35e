package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/fantasia-hpo/fantasia/internal/app/coordinatorcli"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// The test's program is started again in other roles, which these variables choose. Their
// values are the address of the profiler and the workers as JSON.
const (
	coordinatorRole = "FANTASIA_LOAD_COORDINATOR"
	workersRole     = "FANTASIA_LOAD_WORKERS"
)

// play runs the role that the environment asks for, and reports whether it asks for one.
func play() (code int, asked bool) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if address := os.Getenv(coordinatorRole); address != "" {
		return coordinate(ctx, address), true
	}
	if text := os.Getenv(workersRole); text != "" {
		var c crew
		err := json.Unmarshal([]byte(text), &c)
		if err == nil {
			err = c.run(ctx)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// coordinate is the program coordinator with a profiler beside it.
func coordinate(ctx context.Context, profiler string) int {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.Handle("/debug/pprof/heap", pprof.Handler("heap"))
	s := &http.Server{Addr: profiler, Handler: mux, ReadHeaderTimeout: time.Second}
	served := make(chan error, 1)
	go func() { served <- s.ListenAndServe() }()
	code := coordinatorcli.Main(ctx, os.Args[1:], "load", os.Stderr)
	_ = s.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "the profiler:", err)
		return 1
	}
	return code
}

// crew is workers in one process. Each has its own connection, directory and spool, as if
// it ran alone.
type crew struct {
	NATS string `json:"nats"`
	// Dir is the directory of the crew's files; each worker's is below it.
	Dir  string `json:"dir"`
	Name string `json:"name"`
	Pool string `json:"pool"`
	// Workers is their number, Slots that of the slots of each.
	Workers int `json:"workers"`
	Slots   int `json:"slots"`
	// Takes is how long an evaluation takes.
	Takes time.Duration `json:"takes"`
	// Reports is the time between two measurements of an evaluation; 0 for none.
	Reports time.Duration `json:"reports"`
}

// event is one evaluation. Times are in nanoseconds since 1970; 0 where there is none.
type event struct {
	Study   string `json:"study"`
	Trial   int    `json:"trial"`
	Attempt int    `json:"attempt"`
	// Free is the end of the slot's evaluation before this one. Fetched is when the worker
	// got the assignment, Claimed when its claim was stored.
	Free    int64 `json:"free"`
	Fetched int64 `json:"fetched"`
	Claimed int64 `json:"claimed"`
	Begun   int64 `json:"begun"`
	// Ended is 0 if the evaluation was stopped before its end.
	Ended int64   `json:"ended"`
	Value float64 `json:"value"`
}

// begunFile exists once all workers of a crew take trials; eventsFile is written when the
// crew ends.
func (c *crew) begunFile() string  { return filepath.Join(c.Dir, "begun") }
func (c *crew) eventsFile() string { return filepath.Join(c.Dir, "events.json") }

// diary is what a crew's workers did. Safe for concurrent use.
type diary struct {
	mu     sync.Mutex
	events []event
	times  map[messaging.AttemptID]claimTimes // of what was fetched and has not begun
}

type claimTimes struct{ fetched, claimed int64 }

// run runs the workers until ctx ends, and writes down what they did.
func (c *crew) run(ctx context.Context) error {
	d := &diary{times: map[messaging.AttemptID]claimTimes{}}
	var all []*worker.Worker
	for i := range c.Workers {
		name := messaging.WorkerName(c.Pool, fmt.Sprintf("%s-%d", c.Name, i))
		conn, err := nats.Connect(c.NATS, append(natsbus.WorkerConnectOptions(c.Pool, name), nats.RetryOnFailedConnect(true))...)
		if err != nil {
			return err
		}
		defer conn.Close()
		bus, err := natsbus.NewWorker(conn, natsbus.WorkerOptions{Name: name, Pool: c.Pool})
		if err != nil {
			return err
		}
		defer func() { _ = bus.Close() }()
		o := worker.DefaultOptions()
		o.Name, o.Pool, o.Slots, o.GPUs = name, c.Pool, c.Slots, "none"
		o.StateDir = filepath.Join(c.Dir, fmt.Sprint(i))
		o.Bus = &clockedBus{Worker: bus, diary: d}
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
		o.NewEvaluator = func(int) (evaluation.Evaluator, error) {
			return &clockedEvaluator{crew: c, diary: d}, nil
		}
		w, err := worker.New(o)
		if err != nil {
			return err
		}
		all = append(all, w)
	}
	var workers errgroup.Group
	for _, w := range all {
		workers.Go(func() error { return w.Run(ctx) })
	}
	if err := os.WriteFile(c.begunFile(), nil, 0o600); err != nil {
		return err
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	file, err := os.Create(c.eventsFile())
	if err != nil {
		return err
	}
	out := json.NewEncoder(file)
	for i := range d.events {
		if err := out.Encode(&d.events[i]); err != nil {
			return err
		}
	}
	return file.Close()
}

// clockedBus notes when assignments are fetched and claimed.
type clockedBus struct {
	messaging.Worker
	diary *diary
}

// Fetch implements messaging.Worker.
func (b *clockedBus) Fetch(ctx context.Context) (messaging.Delivery, error) {
	d, err := b.Worker.Fetch(ctx)
	if err == nil && d.Err() == nil {
		b.diary.mu.Lock()
		b.diary.times[d.Assignment().AttemptID] = claimTimes{fetched: time.Now().UnixNano()}
		b.diary.mu.Unlock()
	}
	return d, err
}

// Claim implements messaging.Worker.
func (b *clockedBus) Claim(ctx context.Context, id string, c *messaging.Claim) error {
	err := b.Worker.Claim(ctx, id, c)
	b.diary.mu.Lock()
	defer b.diary.mu.Unlock()
	if err == nil {
		t := b.diary.times[c.AttemptID]
		t.claimed = time.Now().UnixNano()
		b.diary.times[c.AttemptID] = t
	}
	return err
}

// clockedEvaluator evaluates by waiting, and notes what it does.
type clockedEvaluator struct {
	crew  *crew
	diary *diary
	free  int64
}

// Accept implements evaluation.Evaluator.
func (e *clockedEvaluator) Accept(*messaging.Assignment) error { return nil }

// Close implements evaluation.Evaluator.
func (e *clockedEvaluator) Close(context.Context) error { return nil }

// Evaluate implements evaluation.Evaluator. An evaluation's value is its parameter x.
func (e *clockedEvaluator) Evaluate(ctx context.Context, task evaluation.Task) evaluation.Ending {
	a := task.Assignment
	d := e.diary
	d.mu.Lock()
	n, times := len(d.events), d.times[a.AttemptID]
	delete(d.times, a.AttemptID)
	d.events = append(d.events, event{Study: a.Study, Trial: a.Trial, Attempt: a.Attempt, Free: e.free,
		Fetched: times.fetched, Claimed: times.claimed, Begun: time.Now().UnixNano()})
	d.mu.Unlock()
	ending := evaluation.Func(e.wait).Evaluate(ctx, task)
	e.free = time.Now().UnixNano()
	if ending.Outcome == messaging.OutcomeCompleted {
		d.mu.Lock()
		d.events[n].Ended, d.events[n].Value = e.free, ending.Values.First()
		d.mu.Unlock()
	}
	return ending
}

// wait takes its time, reports measurements meanwhile, and returns the parameter x.
func (e *clockedEvaluator) wait(ctx context.Context, p study.Point, task evaluation.Task) (float64, error) {
	x, ok := p["x"].(float64)
	if !ok {
		return 0, fmt.Errorf("the parameter x is %v", p["x"])
	}
	if e.crew.Takes == 0 {
		return x, nil
	}
	end := time.NewTimer(e.crew.Takes)
	defer end.Stop()
	var reports <-chan time.Time
	if e.crew.Reports > 0 {
		ticker := time.NewTicker(e.crew.Reports)
		defer ticker.Stop()
		reports = ticker.C
	}
	for step := int64(1); ; step++ {
		select {
		case <-end.C:
			return x, nil
		case <-reports:
			task.Measure(step, map[string]float64{"loss": x + 1/float64(step)})
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
