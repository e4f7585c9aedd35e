package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a sidecar whose slots do as a worker's do: they await, fetch from a
// queue, and evaluate one assignment after another.
type rig struct {
	t *testing.T
	*Sidecar
	handler http.Handler
	queue   chan *messaging.Assignment
	kill    chan struct{} // no more grace

	mu       sync.Mutex
	left     bool // Options.Leave was called
	running  map[int]context.CancelCauseFunc
	endings  map[int]evaluation.Ending
	measured map[int]map[int64]map[string]float64
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	r := &rig{
		t: t, queue: make(chan *messaging.Assignment, 100), kill: make(chan struct{}), running: map[int]context.CancelCauseFunc{},
		endings: map[int]evaluation.Ending{}, measured: map[int]map[int64]map[string]float64{},
	}
	if o.Slots == 0 {
		o.Slots = 1
	}
	o.Leave = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.left = true
	}
	var err error
	if r.Sidecar, err = New(o); err != nil {
		t.Fatal(err)
	}
	r.handler = r.Handler()
	ctx, cancel := context.WithCancel(context.Background())
	var slots sync.WaitGroup
	for n := range o.Slots {
		slots.Go(func() { r.slot(ctx, n) })
	}
	t.Cleanup(func() {
		cancel()
		r.stopAll(evaluation.ErrCancelled)
		slots.Wait()
	})
	return r
}

func (r *rig) slot(ctx context.Context, n int) {
	e, err := r.Evaluator(n)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer func() {
		if err := e.Close(ctx); err != nil {
			r.t.Error(err)
		}
	}()
	for {
		wanted, stop, err := e.(evaluation.Gate).Await(ctx)
		if err != nil {
			return
		}
		var a *messaging.Assignment
		select {
		case a = <-r.queue:
		case <-wanted.Done():
		}
		stop()
		if a != nil {
			r.evaluate(n, e, a)
		}
	}
}

func (r *rig) evaluate(n int, e evaluation.Evaluator, a *messaging.Assignment) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r.mu.Lock()
	r.running[a.Trial] = cancel
	r.mu.Unlock()
	measure := func(step int64, metrics map[string]float64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.measured[a.Trial] == nil {
			r.measured[a.Trial] = map[int64]map[string]float64{}
		}
		r.measured[a.Trial][step] = metrics
	}
	ending := e.Evaluate(ctx, evaluation.Task{
		Assignment: a, Slot: n, Kill: r.kill, Measure: measure,
		Trace: messaging.TraceContext{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, twice := r.endings[a.Trial]; twice {
		r.t.Errorf("trial %d ended twice", a.Trial)
	}
	r.endings[a.Trial] = ending
	delete(r.running, a.Trial)
}

// stopAll ends what runs for a cause.
func (r *rig) stopAll(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cancel := range r.running {
		cancel(cause)
	}
}

// ending is how a trial ended; ok is false while it has not.
func (r *rig) ending(trial int) (_ evaluation.Ending, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.endings[trial]
	return e, ok
}

// outcome is a trial's, with the reason of its failure; empty while it is open.
func (r *rig) outcome(trial int) string {
	e, ok := r.ending(trial)
	switch {
	case !ok:
		return ""
	case e.Failure != nil:
		return string(e.Outcome) + ": " + e.Failure.Reason
	default:
		return string(e.Outcome)
	}
}

// do sends a request and returns the answer; the body is nil where it is empty.
func (r *rig) do(ctx context.Context, method, path, body string) (int, map[string]any) {
	req := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1:7070"+path, strings.NewReader(body))
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	var answer map[string]any
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			r.t.Errorf("%s %s answers %q: %v", method, path, w.Body, err)
		}
	}
	return w.Code, answer
}

// post is do with what a test expects.
func (r *rig) post(want int, path, format string, args ...any) map[string]any {
	r.t.Helper()
	code, answer := r.do(context.Background(), http.MethodPost, path, fmt.Sprintf(format, args...))
	if code != want {
		r.t.Fatalf("%s answers %d %v, want %d", path, code, answer, want)
	}
	return answer
}

// next takes a trial and returns its id.
func (r *rig) next(client string) string {
	r.t.Helper()
	return r.post(http.StatusOK, "/v1/next", `{"client": %q}`, client)["id"].(string)
}

// stopReason is what should-stop answers.
func (r *rig) stops(id string) any {
	r.t.Helper()
	code, answer := r.do(context.Background(), http.MethodGet, "/v1/should-stop?id="+id, "")
	if code != http.StatusOK || answer["stop"] != (answer["reason"] != nil) {
		r.t.Fatalf("should-stop answers %d %v", code, answer)
	}
	return answer["reason"]
}

// offer queues assignments of trials.
func (r *rig) offer(trials ...int) {
	for _, n := range trials {
		r.queue <- assigned(n)
	}
}

func assigned(trial int) *messaging.Assignment {
	return &messaging.Assignment{
		Version:   messaging.SchemaVersion,
		AttemptID: messaging.AttemptID{Study: "study-id", Trial: trial, Attempt: 2, Nonce: fmt.Sprintf("nonce-%d", trial)},
		StudyName: "study", Seed: 42, Checkpoint: "s3://before",
		Parameters: study.Point{"x": 3.0, "n": int64(5), "amp": true}, ParameterOrder: []string{"x", "n", "amp"},
		Objective: study.Objective{Metric: "error", Direction: study.Minimize},
		Run:       study.TrialTemplate{Grace: study.Duration(20 * time.Second)},
	}
}

var errStopped = errors.New("stopped in a test")
