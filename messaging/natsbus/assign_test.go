package natsbus_test

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

// If the queue has no room for some of the assignments that are published at once, Assign
// fails, and what was stored before can be fetched, in order. The rest is stored once there is
// room.
func TestAssignMoreThanTheQueueTakes(t *testing.T) {
	t.Parallel()
	const n = 20
	ctx := patient(t)
	b := startBroker(t)
	l := b.leader(natsbus.LeaderOptions{MaxQueueBytes: 2 << 10}) // an assignment takes about 500 bytes
	must(t, l.Setup(ctx, []string{pool}))
	must(t, l.Fence(ctx, 1))
	w := b.worker("w", pool)
	as := make([]*messaging.Assignment, n)
	for i := range as {
		as[i] = assignment(i + 1)
	}
	tries := 1
	for ; ; tries++ {
		failed := l.Assign(ctx, as)
		stored, err := l.Waiting(ctx, as[0].Study)
		must(t, err)
		if failed == nil && len(stored) < len(as) {
			t.Fatalf("Assign reports success with %d of %d assignments in the queue", len(stored), len(as))
		}
		if failed != nil && len(stored) == 0 {
			t.Fatalf("none of %d assignments was stored: %v", len(as), failed)
		}
		for i := range stored { // in their order
			fetch(ctx, t, w, as[i].Trial)
		}
		untilGone(ctx, t, l)
		if failed == nil {
			break
		}
		as = as[len(stored):]
	}
	if tries == 1 {
		t.Error("the queue had room for all assignments at once")
	}
}
