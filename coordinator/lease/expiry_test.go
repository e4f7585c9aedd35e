package lease

import (
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// length is that of the leases.
const length = 20 * time.Second

// noon is when the leader of these tests begins to receive heartbeats.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func heartbeat(worker, instance string, slots, free int, running ...messaging.AttemptID) messaging.Heartbeat {
	return messaging.Heartbeat{Worker: worker, Instance: instance, Pool: study.DefaultPool, Slots: slots, Free: free, Running: running}
}

func attempt(n int) messaging.AttemptID {
	return messaging.AttemptID{Study: "s", Trial: n, Attempt: 1, Nonce: "n"}
}

func TestLeases(t *testing.T) {
	// The worker's clock is an hour ahead, or behind: it does not matter.
	for _, skew := range []time.Duration{-time.Hour, 0, time.Hour} {
		open := []engine.OpenAttempt{{Attempt: attempt(1), Worker: "w", Claimed: noon.Add(skew)}}
		for _, test := range []struct {
			name  string
			beats map[time.Duration]messaging.Heartbeat
			at    time.Duration
			lost  string // a part of the reason; empty where it is not lost
		}{
			{"never heard, within a lease of the first hearing", nil, length, ""},
			{"never heard", nil, length + 1, "not heard"},
			{"silent for a lease", map[time.Duration]messaging.Heartbeat{0: heartbeat("w", "1", 1, 0, attempt(1))}, length, ""},
			{"silent for longer", map[time.Duration]messaging.Heartbeat{time.Second: heartbeat("w", "1", 1, 0, attempt(1))}, length + 2*time.Second,
				"silent for 21s"},
			{"knows it", map[time.Duration]messaging.Heartbeat{2 * length: heartbeat("w", "1", 1, 0, attempt(1))}, 2*length + 1, ""},
			{"has just been seen without it", map[time.Duration]messaging.Heartbeat{2 * length: heartbeat("w", "1", 1, 0)}, 2*length + 1, ""},
		} {
			w := NewWorkers(length)
			w.ListenSince(noon)
			for at, h := range test.beats {
				w.Beat(h, noon.Add(at))
			}
			lost := w.Expired(open, noon.Add(test.at))
			if len(lost) > 1 || (len(lost) == 1) != (test.lost != "") || len(lost) == 1 && !strings.Contains(lost[0].Reason, test.lost) {
				t.Errorf("%s (skew %v): lost %+v, want %q", test.name, skew, lost, test.lost)
			}
		}
	}
}

// An attempt that its worker does not know is given up a lease after it was first
// missed, unless it turns up meanwhile.
func TestForgottenAttempts(t *testing.T) {
	open := []engine.OpenAttempt{{Attempt: attempt(1), Worker: "w", Claimed: noon}}
	w := NewWorkers(length)
	w.ListenSince(noon)
	lostAt := time.Duration(0)
	for at := 5 * time.Second; at < 5*length && lostAt == 0; at += 5 * time.Second {
		h := heartbeat("w", "1", 1, 0)
		if at == 30*time.Second {
			h.Spooled = []messaging.AttemptID{attempt(1)}
		}
		w.Beat(h, noon.Add(at))
		if len(w.Expired(open, noon.Add(at))) > 0 {
			lostAt = at
		}
	}
	// Missed again from 35 s on; more than a lease of 20 s later is 60 s.
	if lostAt != 60*time.Second {
		t.Errorf("lost after %v, want 60 s", lostAt)
	}
}

// A worker that died and came back under its name during a new leader's first lease
// does not know its old attempt, which is given up a lease after that was first seen.
func TestForgottenInTheFirstLease(t *testing.T) {
	open := []engine.OpenAttempt{{Attempt: attempt(1), Worker: "w", Claimed: noon}}
	w := NewWorkers(length)
	w.ListenSince(noon)
	lostAt := time.Duration(0)
	for at := 2 * time.Second; at < 5*length && lostAt == 0; at += time.Second {
		w.Beat(heartbeat("w", "2", 1, 1), noon.Add(at))
		if len(w.Expired(open, noon.Add(at))) > 0 {
			lostAt = at
		}
	}
	if want := 2*time.Second + length + time.Second; lostAt != want { // the first check after more than a lease
		t.Errorf("lost after %v, want %v", lostAt, want)
	}
}

// A break in receiving heartbeats gives every worker a new lease.
func TestNobodyIsLostForABreak(t *testing.T) {
	open := []engine.OpenAttempt{{Attempt: attempt(1), Worker: "w", Claimed: noon}}
	w := NewWorkers(length)
	w.ListenSince(noon)
	w.Beat(heartbeat("w", "1", 1, 0, attempt(1)), noon)
	back := noon.Add(10 * length)
	w.ListenSince(back)
	if lost := w.Expired(open, back.Add(length)); len(lost) > 0 {
		t.Errorf("lost within a lease of the break's end: %+v", lost)
	}
	if lost := w.Expired(open, back.Add(length+1)); len(lost) != 1 {
		t.Error("not lost a lease after the break")
	}
}

// A loop that was delayed, for example by a slow ledger, has heartbeats waiting in its
// inbox: it gives up no worker before it has read them.
func TestNobodyIsLostForALoopThatWasHeldUp(t *testing.T) {
	open := []engine.OpenAttempt{{Attempt: attempt(1), Worker: "w", Claimed: noon}}
	w := NewWorkers(length)
	w.ListenSince(noon)
	at := noon
	for ; at.Before(noon.Add(2 * length)); at = at.Add(CheckEvery) {
		w.Due(at)
		w.Beat(heartbeat("w", "1", 1, 0, attempt(1)), at)
	}
	at = at.Add(2 * length)
	if w.Due(at); len(w.Expired(open, at)) != 0 {
		t.Error("lost, though the loop had not looked for two leases")
	}
	for end := at.Add(length); at.Before(end); at = at.Add(CheckEvery) {
		w.Due(at)
	}
	if w.Due(at.Add(CheckEvery)); len(w.Expired(open, at.Add(CheckEvery))) != 1 {
		t.Error("not lost, though silent for a lease since")
	}
}

func TestInstances(t *testing.T) {
	w := NewWorkers(length)
	for i, test := range []struct {
		instance string
		at       time.Duration
		want     News
	}{
		{"a", 0, News{Fresh: true}},
		{"a", time.Second, News{}},
		{"b", 2 * time.Second, News{Fresh: true}}, // started again
		{"b", 3 * time.Second, News{}},
		{"a", 4 * time.Second, News{Fresh: true, Shared: true}}, // the first still lives
		{"b", 5 * time.Second, News{Fresh: true}},               // said once
	} {
		if got := w.Beat(heartbeat("w", test.instance, 1, 1), noon.Add(test.at)); got != test.want {
			t.Errorf("heartbeat %d of instance %s: %+v, want %+v", i, test.instance, got, test.want)
		}
	}
}

// Workers that are gone are removed, so that names used once do not accumulate.
func TestFleetForgets(t *testing.T) {
	w := NewWorkers(length)
	w.ListenSince(noon)
	for i := range 1000 {
		at := noon.Add(time.Duration(i) * time.Second)
		name := "w" + at.Format("150405")
		w.Beat(heartbeat(name, "1", 1, 1), at)
		w.Expired([]engine.OpenAttempt{{Attempt: attempt(i + 1), Worker: name}}, at)
		w.Due(at)
	}
	if n := len(w.workers); n > 2*int(length/time.Second)+1 {
		t.Errorf("%d workers are remembered", n)
	}
	// One worker stays, and its attempts end in other ways.
	for i := range 1000 {
		at := noon.Add(time.Hour + time.Duration(i)*time.Second)
		w.Beat(heartbeat("stays", "1", 1, 1), at)
		w.Expired([]engine.OpenAttempt{{Attempt: attempt(i + 1), Worker: "stays"}}, at)
		w.Due(at)
	}
	if n := len(w.workers["stays"].missing); n > 2*int(length/time.Second)+1 {
		t.Errorf("%d missing attempts are remembered", n)
	}
}
