package natsbus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

const pool = "default"

// quick checks its streams often.
var quick = natsbus.LeaderOptions{CheckInterval: 50 * time.Millisecond}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lead attaches a leader that is set up and has raised its fence.
func lead(ctx context.Context, t testing.TB, b *broker, epoch int64) *natsbus.Leader {
	t.Helper()
	l := b.leader(quick)
	must(t, l.Setup(ctx, []string{pool}))
	must(t, l.Fence(ctx, epoch))
	return l
}

func attempt(trial int) messaging.AttemptID {
	return messaging.AttemptID{Study: "s", Trial: trial, Attempt: 1, Nonce: "n"}
}

func assignment(trial int) *messaging.Assignment {
	a := &messaging.Assignment{AttemptID: attempt(trial), Pool: pool, StudyName: "digits"}
	a.Objective.Metric = "error"
	return a
}

func claim(trial int, worker string) *messaging.Claim {
	return &messaging.Claim{AttemptID: attempt(trial), Pool: pool, Worker: worker}
}

func result(trial int, worker string) *messaging.Result {
	value := float64(trial)
	return &messaging.Result{AttemptID: attempt(trial), Worker: worker, Outcome: messaging.OutcomeCompleted, Values: []float64{value}}
}

// untilGone waits until the server has handled all acknowledgements: the queue is empty.
func untilGone(ctx context.Context, t *testing.T, l *natsbus.Leader) {
	t.Helper()
	eventually(ctx, t, "an empty queue", func() error {
		waiting, err := l.Waiting(ctx, assignment(1).Study)
		if err == nil && len(waiting) > 0 {
			err = fmt.Errorf("%v are in the queue", waiting)
		}
		return err
	})
}

// eventually retries what an outage can refuse, as callers do.
func eventually(ctx context.Context, t *testing.T, what string, f func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func fetch(ctx context.Context, t *testing.T, w *natsbus.Worker, trial int) {
	t.Helper()
	must(t, fetched(ctx, w, trial))
}

// fetched fetches and acknowledges one assignment, which must be the trial's.
func fetched(ctx context.Context, w *natsbus.Worker, trial int) error {
	d, err := w.Fetch(ctx)
	if err != nil {
		return err
	}
	if err := d.Err(); err != nil {
		return fmt.Errorf("fetched what cannot be read, want trial %d: %w", trial, err)
	}
	if got := d.Assignment(); got.Trial != trial {
		return fmt.Errorf("fetched %+v, want trial %d", got, trial)
	}
	return d.Ack(ctx)
}

func readTrials(ctx context.Context, t *testing.T, r messaging.Reader, trials ...int) (at messaging.Cursor) {
	t.Helper()
	for _, trial := range trials {
		e, err := r.Next(ctx)
		must(t, err)
		id := e.ID
		switch {
		case e.Claim != nil:
			id = e.Claim.AttemptID
		case e.Result != nil:
			id = e.Result.AttemptID
		}
		if id.Trial != trial {
			t.Fatalf("read %+v (%v), want trial %d", id, e.Err, trial)
		}
		at = e.Cursor
	}
	return at
}

// Workers, waiting and new ones, survive an administrator deleting their pool's
// consumer.
func TestConsumerDeleted(t *testing.T) {
	t.Parallel()
	ctx := patient(t)
	b := startBroker(t)
	l := lead(ctx, t, b, 1)
	w := b.worker("w", pool)
	must(t, l.Assign(ctx, []*messaging.Assignment{assignment(1)}))
	fetch(ctx, t, w, 1)
	untilGone(ctx, t, l) // a consumer that is deleted forgets what it was told just before
	done := make(chan error, 1)
	go func() { done <- fetched(ctx, w, 2) }()
	js := b.js()
	must(t, js.DeleteConsumer(ctx, "FANTASIA_ASSIGN", "pool_0_default"))
	must(t, l.Assign(ctx, []*messaging.Assignment{assignment(2)}))
	must(t, <-done)
	untilGone(ctx, t, l)
	must(t, js.DeleteConsumer(ctx, "FANTASIA_ASSIGN", "pool_0_default"))
	must(t, l.Assign(ctx, []*messaging.Assignment{assignment(3)}))
	fetch(ctx, t, b.worker("v", pool), 3)
}

// Streams that an administrator deletes are created again. The leader raises its fence
// again and continues; an older one stays fenced out.
func TestStreamsDeleted(t *testing.T) {
	t.Parallel()
	ctx := patient(t)
	b := startBroker(t)
	older := lead(ctx, t, b, 1)
	l := lead(ctx, t, b, 2)
	w := b.worker("w", pool)
	must(t, w.Claim(ctx, "a", claim(1, "w")))
	r, err := l.Read(ctx, messaging.StreamClaim, messaging.Cursor{})
	must(t, err)
	defer r.Close()
	readTrials(ctx, t, r, 1)

	js := b.js()
	for _, stream := range []string{"FANTASIA_ASSIGN", "FANTASIA_CLAIM", "FANTASIA_RESULT", "FANTASIA_METRIC", "FANTASIA_DLQ"} {
		must(t, js.DeleteStream(ctx, stream))
	}
	must(t, l.Assign(ctx, []*messaging.Assignment{assignment(2), assignment(3)}))
	fetch(ctx, t, w, 2)
	fetch(ctx, t, w, 3)
	if err := older.Assign(ctx, []*messaging.Assignment{assignment(4)}); !errors.Is(err, messaging.ErrFenced) {
		t.Errorf("the older leader assigns: %v, want ErrFenced", err)
	}
	eventually(ctx, t, "claim", func() error { return w.Claim(ctx, "b", claim(2, "w")) })
	eventually(ctx, t, "result", func() error { return w.PublishResult(ctx, result(2, "w")) })
	eventually(ctx, t, "bury", func() error { return l.Bury(ctx, "x", "y", nil) })
	readTrials(ctx, t, r, 2)
}

// A server that is killed and restarted has everything that it acknowledged; workers
// and readers continue by themselves.
func TestServerRestarted(t *testing.T) {
	t.Parallel()
	ctx := patient(t)
	b := startBroker(t)
	l := lead(ctx, t, b, 1)
	w := b.worker("w", pool)
	r, err := l.Read(ctx, messaging.StreamResult, messaging.Cursor{})
	must(t, err)
	defer r.Close()
	must(t, w.PublishResult(ctx, result(1, "w")))
	at := readTrials(ctx, t, r, 1)
	must(t, w.PublishResult(ctx, result(2, "w")))
	must(t, l.Assign(ctx, []*messaging.Assignment{assignment(1)}))

	b.stop()
	if err := w.PublishResult(ctx, result(9, "w")); err == nil {
		t.Error("a result was published to a server that is down")
	}
	if err := l.Healthy(ctx); err == nil {
		t.Error("a server that is down is healthy")
	}
	b.start()

	fetch(ctx, t, w, 1)
	eventually(ctx, t, "publish", func() error { return w.PublishResult(ctx, result(3, "w")) })
	eventually(ctx, t, "healthy", func() error { return l.Healthy(ctx) })
	if end := readTrials(ctx, t, r, 2, 3); !end.Created.Equal(at.Created) {
		t.Errorf("the stream is of %v now, was of %v", end.Created, at.Created)
	}
	if err := l.Assign(ctx, []*messaging.Assignment{assignment(2)}); err != nil {
		t.Errorf("the leader's fence does not stand after the restart: %v", err)
	}
}

// A server that starts on an older copy of its store is noticed, even if new messages
// have passed the old cursor in the meantime.
func TestStoreFromThePast(t *testing.T) {
	t.Parallel()
	for _, after := range []int{1, 20} {
		t.Run(fmt.Sprintf("%d messages later", after), func(t *testing.T) {
			ctx := patient(t)
			b := startBroker(t)
			l := lead(ctx, t, b, 1)
			w := b.worker("w", pool)
			r, err := l.Read(ctx, messaging.StreamClaim, messaging.Cursor{})
			must(t, err)
			defer r.Close()
			must(t, w.Claim(ctx, "a", claim(1, "w")))
			readTrials(ctx, t, r, 1)

			b.stop()
			past := filepath.Join(t.TempDir(), "past")
			must(t, os.CopyFS(past, os.DirFS(b.dir)))
			b.start()
			for trial := 2; trial <= 5; trial++ {
				eventually(ctx, t, "claim", func() error { return w.Claim(ctx, "a", claim(trial, "w")) })
			}
			cursor := readTrials(ctx, t, r, 2, 3, 4, 5)

			b.stop()
			b.dir = past
			b.start()
			want := []int{1}
			for trial := 11; trial <= 10+after; trial++ {
				eventually(ctx, t, "claim", func() error { return w.Claim(ctx, "a", claim(trial, "w")) })
				want = append(want, trial)
			}
			readTrials(ctx, t, r, want...)
			later, err := l.Read(ctx, messaging.StreamClaim, cursor)
			must(t, err)
			defer later.Close()
			readTrials(ctx, t, later, want...)
		})
	}
}

// No assignment of an older leader is stored after a newer one's fence, however the two
// race, and however many are published at once.
func TestFenceRace(t *testing.T) {
	for _, size := range []int{1, 50} {
		t.Run(strconv.Itoa(size), func(t *testing.T) { fenceRace(t, size) })
	}
}

func fenceRace(t *testing.T, size int) {
	t.Helper()
	ctx := patient(t)
	b := startBroker(t)
	older, newer := lead(ctx, t, b, 1), b.leader(quick)
	started := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		for trial := 1; ; trial += size {
			batch := make([]*messaging.Assignment, size)
			for i := range batch {
				batch[i] = assignment(trial + i)
			}
			if err := older.Assign(ctx, batch); err != nil {
				ended <- err
				return
			}
			if trial == 1 {
				close(started)
			}
		}
	}()
	<-started
	must(t, newer.Fence(ctx, 2))
	if err := <-ended; !errors.Is(err, messaging.ErrFenced) {
		t.Fatalf("the older leader ended with %v, want ErrFenced", err)
	}
	stream, err := b.js().Stream(ctx, "FANTASIA_ASSIGN")
	must(t, err)
	fence, err := stream.GetLastMsgForSubject(ctx, "fantasia.fence.0")
	must(t, err)
	if state := stream.CachedInfo().State; string(fence.Data) != "2" || state.LastSeq != fence.Sequence {
		t.Errorf("the fence %q has sequence %d, the last message %d", fence.Data, fence.Sequence, state.LastSeq)
	}
}

// Messages are refused at once while disconnected and never sent later: an old leader's
// messages must not arrive when a partition heals.
func TestNothingIsReplayed(t *testing.T) {
	t.Parallel()
	ctx := patient(t)
	b := startBroker(t)
	l := lead(ctx, t, b, 1)
	w := b.worker("w", pool)
	controls, err := w.Controls(ctx)
	must(t, err)
	b.stop()
	stale := &messaging.Control{Kind: messaging.ControlCancel, Worker: "w", AttemptID: attempt(1)}
	eventually(ctx, t, "notice that the server is down", func() error {
		if l.Control(ctx, stale) == nil {
			return errors.New("it was taken")
		}
		return nil
	})
	if err := l.Assign(ctx, []*messaging.Assignment{assignment(1)}); err == nil {
		t.Error("an assignment was published to a server that is down")
	}
	b.start()
	fresh := &messaging.Control{Kind: messaging.ControlCancel, Worker: "w", AttemptID: attempt(2)}
	eventually(ctx, t, "reach the worker", func() error {
		if err := l.Control(ctx, fresh); err != nil {
			return err
		}
		select {
		case c := <-controls:
			if c.Trial != fresh.Trial {
				t.Errorf("received %+v, which was sent while the server was down", c)
			}
			return nil
		case <-time.After(50 * time.Millisecond):
			return errors.New("nothing came")
		}
	})
	stream, err := b.js().Stream(ctx, "FANTASIA_ASSIGN")
	must(t, err)
	if n := stream.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("the stream has %d messages, want the fence alone", n)
	}
}

// A connection that is closed for good ends the calls instead of making them retry.
func TestConnectionClosed(t *testing.T) {
	ctx := patient(t)
	b := startBroker(t)
	lead(ctx, t, b, 1)
	nc := b.connect("w")
	w, err := natsbus.NewWorker(nc, natsbus.WorkerOptions{Name: "w", Pool: pool})
	must(t, err)
	closeAtEnd(t, w)
	ended := make(chan error, 1)
	go func() {
		_, err := w.Fetch(ctx)
		ended <- err
	}()
	nc.Close()
	if err := <-ended; !errors.Is(err, messaging.ErrClosed) {
		t.Errorf("fetch: %v, want ErrClosed", err)
	}
	if err := w.PublishResult(ctx, result(1, "w")); !errors.Is(err, messaging.ErrClosed) {
		t.Errorf("publish: %v, want ErrClosed", err)
	}
}

// A Fetch whose context has ended requests nothing: nobody would take what is sent.
func TestEndedFetchRequestsNothing(t *testing.T) {
	t.Parallel()
	ctx := patient(t)
	b := startBroker(t)
	lead(ctx, t, b, 1)
	w := b.worker("w", pool)
	listener, seen := b.connect("listener"), make(chan *nats.Msg, 100)
	for _, subject := range []string{"$JS.API.CONSUMER.MSG.NEXT.>", "fantasia.heartbeat.>"} {
		_, err := listener.ChanSubscribe(subject, seen)
		must(t, err)
	}
	must(t, listener.FlushWithContext(ctx))
	ended, end := context.WithCancel(ctx)
	end()
	for range 20 {
		if _, err := w.Fetch(ended); !errors.Is(err, context.Canceled) {
			t.Fatalf("fetch: %v, want the context's error", err)
		}
	}
	// The connection keeps the order: a request would be seen before the heartbeat.
	must(t, w.Heartbeat(ctx, &messaging.Heartbeat{Worker: "w", Pool: pool, Instance: "i", Slots: 1}))
	select {
	case m := <-seen:
		if !strings.HasPrefix(m.Subject, "fantasia.heartbeat.") {
			t.Errorf("a request was sent on %s", m.Subject)
		}
	case <-ctx.Done():
		t.Fatal("no heartbeat was seen")
	}
}

// A server that starts again does not know the requests that it held. So a worker asks it
// again as soon as it is connected, and not only once it has missed two heartbeats, 10 s later.
func TestFetchAsksARestartedServerAgain(t *testing.T) {
	t.Parallel()
	ctx := patient(t)
	b := startBroker(t)
	l := lead(ctx, t, b, 1)
	w := b.worker("w", pool)
	listener, asked := b.connect("listener"), make(chan *nats.Msg, 100)
	_, err := listener.ChanSubscribe("$JS.API.CONSUMER.MSG.NEXT.>", asked)
	must(t, err)
	must(t, listener.FlushWithContext(ctx))
	type fetched struct {
		messaging.Delivery
		err error
	}
	got := make(chan fetched, 1)
	go func() {
		d, err := w.Fetch(ctx)
		got <- fetched{d, err}
	}()
	<-asked // the worker's request waits at the server
	b.stop()
	b.start()
	for err := errors.New("not yet"); err != nil; {
		must(t, ctx.Err())
		err = l.Assign(ctx, []*messaging.Assignment{assignment(1)})
	}
	began := time.Now()
	f := <-got
	must(t, f.err)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the assignment came after %v, want at once", took)
	}
	must(t, f.Ack(ctx))
}

// A pull does not allocate a queue for tens of thousands of messages, which takes 512 KiB.
func TestPullAllocatesLittle(t *testing.T) { // not parallel: it looks at the whole process
	ctx := patient(t)
	b := startBroker(t)
	l := lead(ctx, t, b, 1)
	w := b.worker("w", pool)
	const pulls, most = 50, 256 << 10
	for i := range pulls {
		must(t, l.Assign(ctx, []*messaging.Assignment{assignment(i + 1)}))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range pulls {
		d, err := w.Fetch(ctx)
		must(t, err)
		must(t, d.Ack(ctx))
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / pulls; each > most {
		t.Errorf("a pull allocates %d bytes, want at most %d", each, most)
	}
}
