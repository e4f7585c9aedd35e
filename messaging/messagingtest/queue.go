package messagingtest

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// ackIsNotOwnership: the late ack of a first delivery removes the message while a
// second worker holds it. The claim decides who runs it.
func ackIsNotOwnership(f *fixture) {
	l := f.leader(1)
	slow, quick := f.Worker("slow", Pool), f.Worker("quick", Pool)
	f.assign(l, assignment("s", 1))
	first := f.fetch(slow)
	second := f.fetch(quick) // after AckWait
	f.ok(first.Ack(f.ctx), "the late ack")
	f.ok(quick.Claim(f.ctx, "id", claim(second.Assignment().AttemptID, "quick")), "claim of the second holder")
	f.ok(second.Ack(f.ctx), "the second ack")
	f.want(slow.Claim(f.ctx, "id", claim(first.Assignment().AttemptID, "slow")),
		messaging.ErrClaimed, "claim of whoever acknowledged first")
	f.nothing(quick)
}

func unacknowledgedComesAgain(f *fixture) {
	l, w := f.pair()
	f.assign(l, assignment("s", 1))
	first := f.fetch(w)
	start := time.Now()
	again := f.fetch(w)
	if took := time.Since(start); took < f.AckWait/2 {
		f.Errorf("it came again after %v, before AckWait %v", took, f.AckWait)
	}
	f.same("the second delivery differs (-first +again)", first.Assignment(), again.Assignment())
	f.ok(again.Ack(f.ctx), "ack")
	f.ok(again.Ack(f.ctx), "ack again")
}

func nakDelays(f *fixture) {
	const delay = 300 * time.Millisecond
	l, w := f.pair()
	f.assign(l, assignment("s", 1))
	d := f.fetch(w)
	start := time.Now()
	f.ok(d.Nak(f.ctx, delay), "nak")
	again := f.fetch(w)
	if took := time.Since(start); took < delay {
		f.Errorf("it came again after %v, before the delay of %v", took, delay)
	}
	start = time.Now()
	f.ok(again.Nak(f.ctx, 0), "nak without a delay")
	last := f.fetch(w)
	if took := time.Since(start); took >= f.AckWait {
		f.Errorf("it came again after %v, want at once", took)
	}
	f.ok(last.Ack(f.ctx), "ack")
}

// deliveredTooOften: an assignment that is never acknowledged is no longer delivered,
// and is recorded; publishing it again starts anew.
func deliveredTooOften(f *fixture) {
	const maxDeliver = 20
	l, w := f.pair()
	f.assign(l, assignment("s", 1))
	for range maxDeliver {
		f.ok(f.fetch(w).Nak(f.ctx, 0), "nak")
	}
	f.nothing(w)
	if n := len(f.DeadLetters()); n != 1 {
		f.Errorf("%d dead letters, want 1", n)
	}
	f.assign(l, assignment("s", 1))
	f.ok(f.fetch(w).Ack(f.ctx), "ack")
	f.nothing(w)
}

// assignedAgain: publishing again replaces what is queued, and queues it again after it
// was acknowledged; its claim then prevents a second run.
func assignedAgain(f *fixture) {
	l, w := f.pair()
	a := assignment("s", 1)
	for range 3 {
		f.assign(l, a)
	}
	d := f.fetch(w)
	f.ok(w.Claim(f.ctx, "first", claim(a.AttemptID, "w")), "claim")
	f.ok(d.Ack(f.ctx), "ack")
	f.nothing(w)

	f.assign(l, a)
	again := f.fetch(w)
	f.want(w.Claim(f.ctx, "second", claim(a.AttemptID, "w")), messaging.ErrClaimed, "claim it again")
	f.ok(again.Ack(f.ctx), "ack it unrun")
	f.nothing(w)
}

func poolsApart(f *fixture) {
	l := f.leader(1)
	f.ok(l.Setup(f.ctx, []string{Pool, "gpu"}), "set up another pool")
	gpu := assignment("s", 1)
	gpu.Pool = "gpu"
	f.assign(l, gpu, assignment("s", 2))
	if got := f.fetch(f.Worker("g", "gpu")).Assignment().Trial; got != 1 {
		f.Errorf("the gpu pool got trial %d, want 1", got)
	}
	if got := f.fetch(f.Worker("w", Pool)).Assignment().Trial; got != 2 {
		f.Errorf("the default pool got trial %d, want 2", got)
	}
}

// fetchBeforeSetup: a worker may start before there is a leader.
func fetchBeforeSetup(f *fixture) {
	w := f.Worker("w", Pool)
	fetched := make(chan error, 1)
	go func() {
		d, err := w.Fetch(f.ctx)
		if err == nil {
			err = d.Ack(f.ctx)
		}
		fetched <- err
	}()
	f.assign(f.leader(1), assignment("s", 1))
	f.ok(receive(f, fetched), "fetch")
}

func batch(f *fixture) {
	const n = 100
	l, w := f.pair()
	f.assign(l, assignments("s", n)...)
	f.assign(l)
	for i := range n {
		d := f.fetch(w)
		if diff := cmp.Diff(assignment("s", i+1), d.Assignment()); diff != "" {
			f.Fatalf("assignment %d (-sent +fetched):\n%s", i, diff)
		}
		f.ok(d.Ack(f.ctx), "ack")
	}
	f.nothing(w)
	if err := l.Assign(f.ctx, assignments("s", 1001)); err == nil {
		f.Error("a batch of 1,001 was taken")
	}
	bad := assignments("s", 3)
	bad[2].Nonce = ""
	f.want(l.Assign(f.ctx, bad), messaging.ErrInvalid, "assign a batch with an invalid assignment")
	f.nothing(w)
}

func assignNeedsFence(f *fixture) {
	l := f.Leader()
	f.ok(l.Setup(f.ctx, []string{Pool}), "set up")
	if err := l.Assign(f.ctx, assignments("s", 1)); err == nil {
		f.Error("a leader that never fenced could assign")
	}
	f.nothing(f.Worker("w", Pool))
}

// olderLeaderIsFenced: after a newer leader's fence, an older leader cannot publish
// anything, not even part of a batch.
func olderLeaderIsFenced(f *fixture) {
	older, newer := f.leader(10), f.leader(20)
	w := f.Worker("w", Pool)
	for _, n := range []int{1, 10} {
		f.want(older.Assign(f.ctx, assignments("old", n)), messaging.ErrFenced, "the older leader assigns %d", n)
	}
	f.nothing(w)
	f.assign(newer, assignment("new", 1))
	if got := f.fetch(w).Assignment().Study; got != "new" {
		f.Errorf("fetched an assignment of study %q, want the newer leader's", got)
	}
	f.want(older.Fence(f.ctx, 10), messaging.ErrFenced, "the older leader fences again")
}

func fenceOrder(f *fixture) {
	l := f.Leader()
	f.ok(l.Setup(f.ctx, []string{Pool}), "set up")
	w := f.Worker("w", Pool)
	for i, epoch := range []int64{5, 5, 8} {
		f.ok(l.Fence(f.ctx, epoch), "fence %d", epoch)
		f.assign(l, assignment("s", i+1))
		f.ok(f.fetch(w).Ack(f.ctx), "ack")
	}
	f.want(l.Fence(f.ctx, 7), messaging.ErrFenced, "fence an older epoch")
	if err := l.Fence(f.ctx, 0); err == nil {
		f.Error("epoch 0 was taken")
	}
	f.nothing(w) // a fence is no assignment
}

func contextEnds(f *fixture) {
	l, w := f.pair()
	r := f.openReader(l, messaging.StreamResult, messaging.Cursor{})
	ctx, cancel := context.WithCancel(f.ctx)
	heartbeats, err := l.Heartbeats(ctx)
	f.ok(err, "heartbeats")
	controls, err := w.Controls(ctx)
	f.ok(err, "controls")
	ended := make(chan error, 2)
	go func() {
		_, err := w.Fetch(ctx)
		ended <- err
	}()
	go func() {
		_, err := r.Next(ctx)
		ended <- err
	}()
	cancel()
	for range cap(ended) {
		f.want(receive(f, ended), context.Canceled, "a call whose context ended")
	}
	if _, ok := <-heartbeats; ok {
		f.Error("a heartbeat came, want a closed channel")
	}
	if _, ok := <-controls; ok {
		f.Error("a control message came, want a closed channel")
	}
	f.want(w.PublishResult(ctx, result(attempt("s", 1), "w", 1)), context.Canceled, "publish")

	ctx, cancel = context.WithCancel(f.ctx)
	bound, err := l.Read(ctx, messaging.StreamResult, messaging.Cursor{})
	f.ok(err, "read")
	cancel()
	_, err = bound.Next(f.ctx)
	f.want(err, context.Canceled, "the next entry of a reader whose context ended")
	f.ok(bound.Close(), "close")
	f.ok(w.PublishResult(f.ctx, result(attempt("s", 1), "w", 1)), "publish")
	if e := f.next(r); e.Result == nil {
		f.Errorf("read %+v, want a result: one cancelled Next must not break the reader", e)
	}
}

func closed(f *fixture) {
	l, w := f.pair()
	r := f.openReader(l, messaging.StreamClaim, messaging.Cursor{})
	beats, err := l.Heartbeats(f.ctx)
	f.ok(err, "heartbeats")
	ended := make(chan error, 2)
	go func() {
		_, err := w.Fetch(f.ctx)
		ended <- err
	}()
	go func() {
		_, err := r.Next(f.ctx)
		ended <- err
	}()
	for i, c := range []interface{ Close() error }{w, l, w, l} {
		f.ok(c.Close(), "close %d", i)
	}
	for range cap(ended) {
		f.want(receive(f, ended), messaging.ErrClosed, "a call that was waiting")
	}
	if _, ok := <-beats; ok {
		f.Error("a heartbeat came, want a closed channel")
	}
	id := attempt("s", 1)
	calls := map[string]func() error{
		"Assign":    func() error { return l.Assign(f.ctx, assignments("s", 1)) },
		"Fence":     func() error { return l.Fence(f.ctx, 2) },
		"Withdraw":  func() error { return l.Withdraw(f.ctx, assignment("s", 1)) },
		"Healthy":   func() error { return l.Healthy(f.ctx) },
		"Bury":      func() error { return l.Bury(f.ctx, "x", "y", nil) },
		"Control":   func() error { return l.Control(f.ctx, control(id, "w")) },
		"Claim":     func() error { return w.Claim(f.ctx, "id", claim(id, "w")) },
		"Result":    func() error { return w.PublishResult(f.ctx, result(id, "w", 1)) },
		"Heartbeat": func() error { return w.Heartbeat(f.ctx, heartbeat("w")) },
		"Fetch":     func() error { _, err := w.Fetch(f.ctx); return err },
		"Controls":  func() error { _, err := w.Controls(f.ctx); return err },
		"Read": func() error {
			_, err := l.Read(f.ctx, messaging.StreamClaim, messaging.Cursor{})
			return err
		},
	}
	for name, call := range calls {
		f.want(call(), messaging.ErrClosed, "%s after Close", name)
	}
	f.ok(f.leader(2).Healthy(f.ctx), "another leader on the same broker")
}

func control(id messaging.AttemptID, name string) *messaging.Control {
	return &messaging.Control{Version: messaging.SchemaVersion, Kind: messaging.ControlReceipt,
		Worker: worker(name), AttemptID: id, Disposition: "folded"}
}

func heartbeat(name string) *messaging.Heartbeat {
	return &messaging.Heartbeat{Version: messaging.SchemaVersion, Worker: worker(name), Pool: Pool, Instance: "i1",
		Slots: 4, Free: 3, Running: []messaging.AttemptID{attempt("s", 1)},
		At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Host: fmt.Sprintf("host-%s", name)}
}
