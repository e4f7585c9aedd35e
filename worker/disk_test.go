package worker

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// fillDisk makes the worker's disk take no results.
func (r *rig) fillDisk() {
	r.t.Helper()
	if err := os.RemoveAll(spoolDir(r.options.StateDir)); err != nil {
		r.t.Fatal(err)
	}
}

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
		r.fillDisk()
		time.Sleep(time.Minute) // the slot already waits for the next assignment, and gives it back
		r.offer(assigned(2))
		r.offer(assigned(3))
		time.Sleep(10 * time.Minute)
		if claims := r.seen().claims; len(claims) != 1 {
			t.Errorf("%d claims, want 1 while results cannot be written", len(claims))
		}
		if err := os.MkdirAll(spoolDir(r.options.StateDir), 0o700); err != nil {
			t.Fatal(err)
		}
		r.untilTold(3)
	})
}

// A worker with a full disk still leaves when it is asked to.
func TestLeavingWithoutRoomForResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		r := newRig(t, c.square, membus.Options{})
		leave := r.start()
		r.offer(assigned(1))
		r.untilTold(1)
		r.fillDisk()
		time.Sleep(time.Minute)
		r.offer(assigned(2)) // wakes the slot
		time.Sleep(time.Minute)
		if claims := r.seen().claims; len(claims) != 1 {
			t.Errorf("%d claims, want 1 while results cannot be written", len(claims))
		}
		leave()
	})
}

// A result that finds no space on the disk is sent from memory, and nothing is claimed after it.
func TestNothingIsClaimedAfterAResultFoundNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		r := newRig(t, c.square, membus.Options{})
		leave := r.start()
		defer leave()
		r.offer(assigned(1))
		r.untilTold(1)
		r.fillDisk()
		r.offer(assigned(2)) // the last look at the disk was just now
		r.untilTold(2)
		r.offer(assigned(3))
		time.Sleep(time.Minute)
		if claims := r.seen().claims; len(claims) != 2 {
			t.Errorf("%d claims, want 2: none after a result was not written", len(claims))
		}
	})
}

// A heartbeat of a worker with as many slots as there may be fits into a message.
func TestTheLargestHeartbeatFits(t *testing.T) {
	id := func(trial int) messaging.AttemptID {
		return messaging.AttemptID{Study: strings.Repeat("s", 26), Trial: 10_000_000 + trial, Attempt: 1000, Nonce: strings.Repeat("n", 26)}
	}
	h := &messaging.Heartbeat{Worker: messaging.WorkerName("default", strings.Repeat("w", 100)), Pool: "default", Instance: "i",
		Slots: MaxSlots, At: time.Now()}
	causes := map[messaging.AttemptID]string{}
	for i := range MaxSlots {
		h.Running = append(h.Running, id(i))
		causes[id(i)] = strings.Repeat("<", 2000+i%messaging.MaxCauses)
	}
	h.SetWaiting(causes)
	for i := range maxSpooled {
		h.Spooled = append(h.Spooled, id(i))
	}
	if _, err := messaging.Encode(h); err != nil {
		t.Error(err)
	}
}
