package worker

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/membus"
)

// A worker whose disk takes no results claims nothing, and goes on once it does.
func TestNothingIsClaimedWithoutRoomForResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		r := newRig(t, c.square, membus.Options{})
		r.options.SpoolLimit = 10
		leave := r.start()
		defer leave()
		r.offer(assigned(1))
		r.untilTold(1)
		if err := os.RemoveAll(spoolDir(r.options.StateDir)); err != nil {
			t.Fatal(err)
		}
		// The slot already waits for the next assignment, and takes that one.
		r.offer(assigned(2))
		r.untilTold(2)
		r.offer(assigned(3))
		time.Sleep(10 * time.Minute)
		if claims := r.seen().claims; len(claims) != 2 {
			t.Errorf("%d claims, want 2 while results cannot be written", len(claims))
		}
		if err := os.MkdirAll(spoolDir(r.options.StateDir), 0o700); err != nil {
			t.Fatal(err)
		}
		r.untilTold(3)
	})
}

// A heartbeat of a worker with as many slots as there may be fits into a message.
func TestTheLargestHeartbeatFits(t *testing.T) {
	id := func(trial int) messaging.AttemptID {
		return messaging.AttemptID{Study: strings.Repeat("s", 26), Trial: 10_000_000 + trial, Attempt: 1000, Nonce: strings.Repeat("n", 26)}
	}
	h := &messaging.Heartbeat{Worker: messaging.WorkerName("default", strings.Repeat("w", 100)), Pool: "default", Instance: "i", Slots: MaxSlots, At: time.Now()}
	for i := range MaxSlots {
		h.Running = append(h.Running, id(i))
	}
	for i := range maxSpooled {
		h.Spooled = append(h.Spooled, id(i))
	}
	if _, err := messaging.Encode(h); err != nil {
		t.Error(err)
	}
}
