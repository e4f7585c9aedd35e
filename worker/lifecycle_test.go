package worker

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
)

func TestFolderIsOneWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(calls).square, membus.Options{})
		r.start()
		synctest.Wait()
		wait, _ := r.run(r.options)
		if err := wait(); !errors.Is(err, ErrStateLocked) {
			t.Errorf("Run: %v, want ErrStateLocked", err)
		}
		bus, err := r.broker.Worker(testWorker, testPool)
		if err != nil {
			t.Fatal(err)
		}
		defer bus.Close()
		if _, err := FlushSpool(t.Context(), bus, r.options.StateDir); !errors.Is(err, ErrStateLocked) {
			t.Errorf("FlushSpool: %v, want ErrStateLocked", err)
		}
	})
}

func TestClosedBusEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(calls).square, membus.Options{})
		o := r.options
		bus, err := r.broker.Worker(o.Name, testPool)
		if err != nil {
			t.Fatal(err)
		}
		o.Bus = bus
		w, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		closing := time.AfterFunc(time.Second, func() { _ = bus.Close() })
		defer closing.Stop()
		if err := w.Run(t.Context()); !errors.Is(err, messaging.ErrClosed) {
			t.Errorf("Run: %v, want ErrClosed", err)
		}
	})
}

// deaf is a bus whose server does not answer: whatever waits for it waits until
// its context ends.
type deaf struct{ messaging.Worker }

func (deaf) Controls(ctx context.Context) (<-chan messaging.Control, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (deaf) Fetch(ctx context.Context) (messaging.Delivery, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (deaf) Heartbeat(ctx context.Context, _ *messaging.Heartbeat) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestLeavesThoughNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := DefaultOptions()
		o.Name, o.StateDir, o.Bus = testWorker, t.TempDir(), deaf{}
		w, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun) - time.Minute; took > 2*replyTimeout {
			t.Errorf("Run ended %s after its context", took)
		}
	})
}

func TestTwoWorkersInOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		r := newRig(t, c.square, membus.Options{})
		r.start()
		o := r.options
		o.Name, o.StateDir = "another", t.TempDir()
		wait, cancel := r.run(o)
		for trial := 1; trial <= 30; trial++ {
			r.offer(assigned(trial))
		}
		r.until("30 results", func() bool { return len(r.results) >= 30 })
		cancel()
		if err := wait(); err != nil {
			t.Error(err)
		}
		for trial := 1; trial <= 30; trial++ {
			if c.of(trial) != 1 {
				t.Errorf("trial %d was evaluated %d times", trial, c.of(trial))
			}
		}
	})
}

func TestNameIsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := Name(dir)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Name(dir); err != nil || second != first {
		t.Errorf("%q, %v; want %q", second, err, first)
	}
	if !messaging.ValidToken(first) {
		t.Errorf("%q is no valid name", first)
	}
	if other, err := Name(t.TempDir()); err != nil || other == first {
		t.Errorf("another folder: %q, %v", other, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}
