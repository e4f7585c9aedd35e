package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/google/go-cmp/cmp"
)

func TestQueueHoldsEachKeyOnce(t *testing.T) {
	var q queue[string, int]
	for i, key := range []string{"b", "a", "b", "c", "a"} {
		q.add(key, i)
	}
	if q.len() != 3 {
		t.Errorf("%d keys, want 3", q.len())
	}
	if diff := cmp.Diff([]int{2, 4, 3}, q.takeAll()); diff != "" {
		t.Error(diff)
	}
	if q.len() != 0 || len(q.takeAll()) != 0 {
		t.Error("the queue is not empty after take")
	}
}

// refusing is a bus that refuses the assignment of one trial, and every group that is
// too large for a bus.
type refusing struct {
	messaging.Leader
	bad  int
	sent *[]int
}

func (r refusing) Assign(_ context.Context, as []*messaging.Assignment) error {
	if len(as) > 1000 {
		return errors.New("too many at once")
	}
	if slices.ContainsFunc(as, func(a *messaging.Assignment) bool { return a.Trial == r.bad }) {
		return fmt.Errorf("trial %d: %w", r.bad, messaging.ErrTooLarge)
	}
	for _, a := range as {
		*r.sent = append(*r.sent, a.Trial)
	}
	return nil
}

// All waiting assignments are published, even thousands after a takeover. One that
// the bus refuses does not block the others.
func TestCarrierPublishesAllButTheBadOne(t *testing.T) {
	r := newRig(t, membus.Options{})
	var sent []int
	o := DefaultOptions()
	o.Etcd, o.Bus = r.etcd, refusing{bad: 7, sent: &sent}
	o.NewOptimizer = newSampler
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l := newLeader(c, &election.Term{})
	var e effects
	const trials = 2500
	for n := range trials {
		a := &messaging.Assignment{AttemptID: attempt(n + 1)}
		e.publish = append(e.publish, outgoing{Assignment: a}, outgoing{Assignment: a})
	}
	l.carrier.add(&e)
	queued, failed := l.carrier.next(), errands{}
	if err := l.carrier.carry(r.ctx(), &queued, &failed); err != nil {
		t.Fatal(err)
	}
	slices.Sort(sent)
	if len(sent) != trials-1 || len(slices.Compact(sent)) != trials-1 {
		t.Errorf("%d assignments were published, want all of %d but one, once each", len(sent), trials)
	}
	if failed.publish.len() != 0 {
		t.Error("an assignment that every bus refuses is retried forever")
	}
}

// fencing is the bus of a leader that another leader has fenced.
type fencing struct{ messaging.Leader }

func (fencing) Assign(context.Context, []*messaging.Assignment) error { return messaging.ErrFenced }

func TestCarrierEndsTheTermOfAFencedLeader(t *testing.T) {
	r := newRig(t, membus.Options{})
	o := DefaultOptions()
	o.Etcd, o.Bus, o.NewOptimizer = r.etcd, fencing{}, newSampler
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l := newLeader(c, &election.Term{})
	l.carrier.add(&effects{publish: []outgoing{{Assignment: &messaging.Assignment{AttemptID: attempt(1)}}}})
	if err := l.carrier.run(r.ctx()); !errors.Is(err, messaging.ErrFenced) {
		t.Errorf("the carrier ended with %v", err)
	}
}
