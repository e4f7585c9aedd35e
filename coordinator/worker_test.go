package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	beatEvery   = 20 * time.Millisecond
	resendEvery = 100 * time.Millisecond
)

// hand is a worker of these tests: it claims, answers, sends heartbeats, and resends
// results until their receipt.
type hand struct {
	t        testing.TB
	name     string
	instance string
	pool     string
	slots    int
	bus      *membus.Worker
	// answer evaluates; if it returns nil, the attempt runs forever.
	answer func(*messaging.Assignment) *messaging.Result
	stop   func()

	mu       sync.Mutex
	running  map[messaging.AttemptID]bool
	spool    map[messaging.AttemptID]*messaging.Result
	controls []messaging.Control
	silent   bool
	told     chan struct{} // closed and made anew with each control
}

// hand starts a worker with a number of slots. It answers at once unless it is given
// another answer.
func (r *rig) hand(name string, slots int, answer func(*messaging.Assignment) *messaging.Result, change ...func(*hand)) *hand {
	r.t.Helper()
	h := &hand{
		t: r.t, name: name, instance: name + "-1", pool: study.DefaultPool, slots: slots, answer: answer,
		running: map[messaging.AttemptID]bool{}, spool: map[messaging.AttemptID]*messaging.Result{}, told: make(chan struct{}),
	}
	if answer == nil {
		h.answer = completes
	}
	for _, f := range change {
		f(h)
	}
	var err error
	if h.bus, err = r.broker.Worker(name, h.pool); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	controls, err := h.bus.Controls(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	var g sync.WaitGroup
	g.Go(func() { h.listen(controls) })
	g.Go(func() { h.repeat(ctx, beatEvery, h.beat) })
	g.Go(func() { h.repeat(ctx, resendEvery, h.resend) })
	for range slots {
		g.Go(func() { h.work(ctx) })
	}
	h.stop = sync.OnceFunc(func() {
		cancel()
		_ = h.bus.Close()
		g.Wait()
	})
	r.t.Cleanup(h.stop)
	return h
}

// completes answers with x squared.
func completes(a *messaging.Assignment) *messaging.Result {
	x := a.Parameters["x"].(float64)
	value := x * x
	return &messaging.Result{Outcome: messaging.OutcomeCompleted, Values: []float64{value}, Metrics: map[string]float64{"loss": value}}
}

// never is a worker whose evaluations do not end.
func never(*messaging.Assignment) *messaging.Result { return nil }

// fails answers with a failure.
func fails(*messaging.Assignment) *messaging.Result {
	return &messaging.Result{Outcome: messaging.OutcomeFailed, Failure: &messaging.Failure{Reason: "exit 1", Message: "last words"}}
}

func (h *hand) repeat(ctx context.Context, every time.Duration, f func(context.Context)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		f(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *hand) beat(ctx context.Context) {
	h.mu.Lock()
	beat := &messaging.Heartbeat{
		Worker: h.name, Pool: h.pool, Instance: h.instance, Slots: h.slots, Free: max(0, h.slots-len(h.running)),
		Running: slices.Collect(maps.Keys(h.running)), Spooled: slices.Collect(maps.Keys(h.spool)), At: time.Now(), StudyCommands: true,
	}
	silent := h.silent
	h.mu.Unlock()
	if !silent {
		_ = h.bus.Heartbeat(ctx, beat) // lost ones are the tests' business
	}
}

func (h *hand) resend(ctx context.Context) {
	h.mu.Lock()
	again := slices.Collect(maps.Values(h.spool))
	h.mu.Unlock()
	for _, res := range again {
		_ = h.bus.PublishResult(ctx, res)
	}
}

func (h *hand) listen(controls <-chan messaging.Control) {
	for c := range controls {
		h.mu.Lock()
		h.controls = append(h.controls, c)
		switch c.Kind {
		case messaging.ControlReceipt:
			delete(h.spool, c.AttemptID)
		case messaging.ControlCancel:
			delete(h.running, c.AttemptID)
		case messaging.ControlAvoid:
		}
		close(h.told)
		h.told = make(chan struct{})
		h.mu.Unlock()
	}
}

// work is one slot.
func (h *hand) work(ctx context.Context) {
	for n := 0; ; n++ {
		d, err := h.bus.Fetch(ctx)
		if err != nil {
			return
		}
		a := d.Assignment()
		if a == nil {
			h.t.Errorf("a poison assignment: %v", d.Err())
			return
		}
		claim := &messaging.Claim{AttemptID: a.AttemptID, Pool: a.Pool, Worker: h.name, At: time.Now()}
		err = h.bus.Claim(ctx, fmt.Sprint(n), claim)
		for errors.Is(err, membus.ErrLost) {
			err = h.bus.Claim(ctx, fmt.Sprint(n), claim)
		}
		_ = d.Ack(ctx)
		if err == nil {
			h.evaluate(ctx, a)
		}
	}
}

// evaluate runs one claimed attempt to its end, or until it is cancelled.
func (h *hand) evaluate(ctx context.Context, a *messaging.Assignment) {
	h.mu.Lock()
	h.running[a.AttemptID] = true
	h.mu.Unlock()
	h.beat(ctx)
	started := time.Now()
	res := h.answer(a)
	if res == nil {
		h.await(ctx, func() bool { return !h.running[a.AttemptID] })
		return
	}
	res.AttemptID, res.Worker, res.Started, res.Ended = a.AttemptID, h.name, started, time.Now()
	h.mu.Lock()
	delete(h.running, a.AttemptID)
	h.spool[a.AttemptID] = res
	h.mu.Unlock()
	_ = h.bus.PublishResult(ctx, res) // sent again until its receipt
}

// await waits until a condition of the hand holds; it returns false if ctx ends.
func (h *hand) await(ctx context.Context, ok func() bool) bool {
	for {
		h.mu.Lock()
		yes, told := ok(), h.told
		h.mu.Unlock()
		if yes {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-told:
		}
	}
}

// heard waits for a control message of a kind about an attempt, or about a study if the
// trial is 0.
func (h *hand) heard(kind messaging.ControlKind, id messaging.AttemptID) messaging.Control {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	var found messaging.Control
	if !h.await(ctx, func() bool {
		i := slices.IndexFunc(h.controls, func(c messaging.Control) bool {
			return c.Kind == kind && (c.AttemptID == id || id.Trial == 0 && c.Study == id.Study)
		})
		if i >= 0 {
			found = h.controls[i]
		}
		return i >= 0
	}) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.t.Fatalf("worker %s heard no %s of %+v, but %+v", h.name, kind, id, h.controls)
	}
	return found
}

// receipts are the dispositions in an attempt's receipts, in order.
func (h *hand) receipts(id messaging.AttemptID) (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.controls {
		if c.Kind == messaging.ControlReceipt && c.AttemptID == id {
			list = append(list, string(c.Disposition))
		}
	}
	return list
}

// set changes the hand.
func (h *hand) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// A failure beside a completed evaluation is a warning: it is stored, and the value counts.
func TestWarningsOfCompletedTrials(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	r.hand("w", 1, func(a *messaging.Assignment) *messaging.Result {
		result := completes(a)
		result.Failure = &messaging.Failure{Reason: messaging.ReasonMemory, Message: "warning: a process was killed"}
		return result
	})
	s := r.create(c, "warned", 1, 1)
	r.ends(s.ID)
	trial := r.trial(s.ID, 1, func(tr *trialRecord) bool { return tr.State == study.TrialCompleted })
	if f := trial.Last().Failure; f == nil || f.Reason != messaging.ReasonMemory || len(trial.Values) != 1 {
		t.Errorf("the trial is %+v, its failure %+v", trial, f)
	}
}
