package membus_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
)

const pool = "default"

// faults makes the operations of one kind fail, one after another.
type faults struct {
	op   membus.Op
	list []membus.Fault
}

func (f *faults) next(e membus.Event) membus.Fault {
	if e.Op != f.op || len(f.list) == 0 {
		return membus.Fault{}
	}
	fault := f.list[0]
	f.list = f.list[1:]
	return fault
}

// bubble runs a test with a broker, a leader that has fenced, and a worker, on a
// clock that moves only while everybody waits.
func bubble(t *testing.T, op membus.Op, list []membus.Fault, run func(*testing.T, *membus.Broker, *membus.Leader, *membus.Worker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := membus.New(membus.Options{Fault: (&faults{op, list}).next})
		l := b.Leader()
		must(t, l.Setup(t.Context(), []string{pool}))
		must(t, l.Fence(t.Context(), 1))
		w, err := b.Worker("w", pool)
		must(t, err)
		run(t, b, l, w)
		must(t, w.Close())
		must(t, l.Close())
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Fatalf("error is %v, want %v", err, wanted)
	}
}

func attempt(trial int) messaging.AttemptID {
	return messaging.AttemptID{Study: "s", Trial: trial, Attempt: 1, Nonce: "n"}
}

func assignment(trial int) []*messaging.Assignment {
	a := &messaging.Assignment{AttemptID: attempt(trial), Pool: pool, StudyName: "digits"}
	a.Objective.Metric = "error"
	return []*messaging.Assignment{a}
}

func claim(trial int) *messaging.Claim {
	return &messaging.Claim{AttemptID: attempt(trial), Pool: pool, Worker: "w"}
}

func result(trial int) *messaging.Result {
	return &messaging.Result{AttemptID: attempt(trial), Worker: "w", Outcome: messaging.OutcomeFailed}
}

func TestLostAndUnanswered(t *testing.T) {
	list := []membus.Fault{{Lost: true}, {Unanswered: true}}
	bubble(t, membus.OpClaim, list, func(t *testing.T, _ *membus.Broker, l *membus.Leader, w *membus.Worker) {
		ctx := t.Context()
		for i, stored := range []uint64{0, 1} {
			want(t, w.Claim(ctx, "id", claim(1)), membus.ErrLost)
			if last, err := l.Last(ctx, messaging.StreamClaim); err != nil || last != stored {
				t.Errorf("try %d: the last claim is %d, %v, want %d", i, last, err, stored)
			}
		}
		must(t, w.Claim(ctx, "id", claim(1)))
		want(t, w.Claim(ctx, "other", claim(1)), messaging.ErrClaimed)
		// The id is forgotten after two minutes, as on JetStream.
		time.Sleep(2 * time.Minute)
		want(t, w.Claim(ctx, "id", claim(1)), messaging.ErrClaimed)
	})
}

func TestCopies(t *testing.T) {
	bubble(t, membus.OpResult, []membus.Fault{{Copies: 2}}, func(t *testing.T, _ *membus.Broker, l *membus.Leader, w *membus.Worker) {
		ctx := t.Context()
		r, err := l.Read(ctx, messaging.StreamResult, messaging.Cursor{})
		must(t, err)
		defer r.Close()
		must(t, w.PublishResult(ctx, result(1)))
		e, err := r.Next(ctx)
		must(t, err)
		if e.Result == nil || e.Cursor.Sequence != 3 {
			t.Errorf("read %+v, want the third copy, which replaced the others", e)
		}
	})
}

func TestDelay(t *testing.T) {
	bubble(t, membus.OpAssign, []membus.Fault{{Delay: time.Minute}}, func(t *testing.T, _ *membus.Broker, l *membus.Leader, w *membus.Worker) {
		start := time.Now()
		go func() {
			if err := l.Assign(t.Context(), assignment(1)); err != nil {
				t.Error(err)
			}
		}()
		d, err := w.Fetch(t.Context())
		must(t, err)
		if took := time.Since(start); took != time.Minute {
			t.Errorf("it was fetched after %v, want one minute", took)
		}
		must(t, d.Ack(t.Context()))
	})
}

// An assignment that reaches nobody is delivered again after AckWait, a nak exactly
// after its delay.
func TestDeliveryTimes(t *testing.T) {
	bubble(t, membus.OpFetch, []membus.Fault{{Lost: true}}, func(t *testing.T, b *membus.Broker, l *membus.Leader, w *membus.Worker) {
		ctx := t.Context()
		start := time.Now()
		must(t, l.Assign(ctx, assignment(1)))
		d, err := w.Fetch(ctx)
		must(t, err)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("it was fetched after %v, want 10 s", took)
		}
		must(t, d.Nak(ctx, 7*time.Second))
		d, err = w.Fetch(ctx)
		must(t, err)
		if took := time.Since(start); took != 17*time.Second {
			t.Errorf("it was fetched again after %v, want 17 s", took)
		}
		if n := b.Queued(pool); n != 1 {
			t.Errorf("%d are queued, want 1", n)
		}
		must(t, d.Ack(ctx))
		if n := b.Queued(pool); n != 0 {
			t.Errorf("%d are queued after the ack, want none", n)
		}
	})
}

func TestHeartbeatLost(t *testing.T) {
	bubble(t, membus.OpHeartbeat, []membus.Fault{{Lost: true}}, func(t *testing.T, _ *membus.Broker, l *membus.Leader, w *membus.Worker) {
		ctx := t.Context()
		beats, err := l.Heartbeats(ctx)
		must(t, err)
		h := &messaging.Heartbeat{Worker: "w", Pool: pool, Instance: "i", Slots: 1}
		for free := range 2 {
			h.Free = free
			must(t, w.Heartbeat(ctx, h))
		}
		if got := <-beats; got.Free != 1 {
			t.Errorf("received the heartbeat with %d free, want only the second", got.Free)
		}
	})
}

// A slow reader of a subscription loses the oldest messages.
func TestSlowReader(t *testing.T) {
	bubble(t, "", nil, func(t *testing.T, _ *membus.Broker, l *membus.Leader, w *membus.Worker) {
		const kept, sent = 1024, 1030
		ctx := t.Context()
		beats, err := l.Heartbeats(ctx)
		must(t, err)
		for free := range sent {
			must(t, w.Heartbeat(ctx, &messaging.Heartbeat{Worker: "w", Pool: "default", Instance: "i", Slots: sent, Free: free}))
		}
		if got := <-beats; got.Free != sent-kept {
			t.Errorf("the oldest is number %d, want %d", got.Free, sent-kept)
		}
	})
}

func TestRewind(t *testing.T) {
	bubble(t, "", nil, func(t *testing.T, b *membus.Broker, l *membus.Leader, w *membus.Worker) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := l.Read(ctx, messaging.StreamResult, messaging.Cursor{})
		must(t, err)
		defer r.Close()
		read := func(trials ...int) {
			t.Helper()
			for _, trial := range trials {
				e, err := r.Next(ctx)
				must(t, err)
				if e.Result == nil || e.Result.Trial != trial {
					t.Fatalf("read %+v, want trial %d", e, trial)
				}
			}
		}
		for trial := 1; trial <= 5; trial++ {
			must(t, w.PublishResult(ctx, result(trial)))
		}
		read(1, 2, 3, 4, 5)
		b.Rewind(messaging.StreamResult, 2)
		for trial := 11; trial <= 20; trial++ { // past the cursor's sequence
			must(t, w.PublishResult(ctx, result(trial)))
		}
		read(1, 2, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
	})
}

// A leader whose fence was wiped raises it again; an older one stays fenced out.
func TestWipe(t *testing.T) {
	bubble(t, "", nil, func(t *testing.T, b *membus.Broker, older *membus.Leader, w *membus.Worker) {
		ctx := t.Context()
		newer := b.Leader()
		must(t, newer.Fence(ctx, 2))
		must(t, newer.Assign(ctx, assignment(1)))
		b.WipeAssignments()
		if n := b.Queued(pool); n != 0 {
			t.Errorf("%d are queued after the wipe", n)
		}
		must(t, newer.Assign(ctx, assignment(2)))
		want(t, older.Assign(ctx, assignment(3)), messaging.ErrFenced)
		d, err := w.Fetch(ctx)
		must(t, err)
		if got := d.Assignment().Trial; got != 2 {
			t.Errorf("fetched trial %d, want 2", got)
		}
		must(t, newer.Close())
	})
}

func TestNames(t *testing.T) {
	b := membus.New(membus.Options{})
	for _, name := range []string{"", "a.b", messaging.LeaderName} {
		if _, err := b.Worker(name, pool); err == nil {
			t.Errorf("worker name %q was taken", name)
		}
	}
	if b.Inject("fantasia.heartbeat.0.w", nil) || b.Inject("other", nil) {
		t.Error("a subject without a stream was taken")
	}
}

// TestCut: the calls of a party that is cut off wait, and it misses what is sent meanwhile.
func TestCut(t *testing.T) {
	bubble(t, membus.OpLog, nil, func(t *testing.T, _ *membus.Broker, l *membus.Leader, w *membus.Worker) {
		beats, err := l.Heartbeats(t.Context())
		must(t, err)
		beat := func(instance string) {
			must(t, w.Heartbeat(t.Context(),
				&messaging.Heartbeat{Version: messaging.SchemaVersion, Worker: "w", Pool: pool, Instance: instance, Slots: 1, At: time.Now()}))
		}
		l.Cut(true)
		beat("missed")
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		want(t, l.Healthy(ctx), context.DeadlineExceeded)
		time.AfterFunc(time.Minute, func() { l.Cut(false) })
		must(t, l.Healthy(t.Context()))
		if d := time.Since(begun); d != time.Minute+time.Second {
			t.Errorf("it was answered after %v", d)
		}
		beat("heard")
		if h := <-beats; h.Instance != "heard" {
			t.Errorf("it has heard %q", h.Instance)
		}
	})
}
