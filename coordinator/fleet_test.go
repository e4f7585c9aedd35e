package coordinator

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

const lease = 20 * time.Second

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
			{"never heard, within a lease of the first hearing", nil, lease, ""},
			{"never heard", nil, lease + 1, "not heard"},
			{"silent for a lease", map[time.Duration]messaging.Heartbeat{0: heartbeat("w", "1", 1, 0, attempt(1))}, lease, ""},
			{"silent for longer", map[time.Duration]messaging.Heartbeat{time.Second: heartbeat("w", "1", 1, 0, attempt(1))}, lease + 2*time.Second, "silent for 21s"},
			{"knows it", map[time.Duration]messaging.Heartbeat{2 * lease: heartbeat("w", "1", 1, 0, attempt(1))}, 2*lease + 1, ""},
			{"has just been seen without it", map[time.Duration]messaging.Heartbeat{2 * lease: heartbeat("w", "1", 1, 0)}, 2*lease + 1, ""},
		} {
			f := newFleet(lease)
			f.listenSince(noon)
			for at, h := range test.beats {
				f.beat(h, noon.Add(at))
			}
			lost := f.lost(open, noon.Add(test.at))
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
	f := newFleet(lease)
	f.listenSince(noon)
	lostAt := time.Duration(0)
	for at := 5 * time.Second; at < 5*lease && lostAt == 0; at += 5 * time.Second {
		h := heartbeat("w", "1", 1, 0)
		if at == 30*time.Second {
			h.Spooled = []messaging.AttemptID{attempt(1)}
		}
		f.beat(h, noon.Add(at))
		if len(f.lost(open, noon.Add(at))) > 0 {
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
	f := newFleet(lease)
	f.listenSince(noon)
	lostAt := time.Duration(0)
	for at := 2 * time.Second; at < 5*lease && lostAt == 0; at += time.Second {
		f.beat(heartbeat("w", "2", 1, 1), noon.Add(at))
		if len(f.lost(open, noon.Add(at))) > 0 {
			lostAt = at
		}
	}
	if want := 2*time.Second + lease + time.Second; lostAt != want { // the first check after more than a lease
		t.Errorf("lost after %v, want %v", lostAt, want)
	}
}

// A break in receiving heartbeats gives every worker a new lease.
func TestNobodyIsLostForABreak(t *testing.T) {
	open := []engine.OpenAttempt{{Attempt: attempt(1), Worker: "w", Claimed: noon}}
	f := newFleet(lease)
	f.listenSince(noon)
	f.beat(heartbeat("w", "1", 1, 0, attempt(1)), noon)
	back := noon.Add(10 * lease)
	f.listenSince(back)
	if lost := f.lost(open, back.Add(lease)); len(lost) > 0 {
		t.Errorf("lost within a lease of the break's end: %+v", lost)
	}
	if lost := f.lost(open, back.Add(lease+1)); len(lost) != 1 {
		t.Error("not lost a lease after the break")
	}
}

// A loop that was delayed, for example by a slow ledger, has heartbeats waiting in its
// inbox: it gives up no worker before it has read them.
func TestNobodyIsLostForALoopThatWasHeldUp(t *testing.T) {
	open := []engine.OpenAttempt{{Attempt: attempt(1), Worker: "w", Claimed: noon}}
	f := newFleet(lease)
	f.listenSince(noon)
	at := noon
	for ; at.Before(noon.Add(2 * lease)); at = at.Add(tickEvery) {
		f.due(at)
		f.beat(heartbeat("w", "1", 1, 0, attempt(1)), at)
	}
	at = at.Add(2 * lease)
	if f.due(at); len(f.lost(open, at)) != 0 {
		t.Error("lost, though the loop had not looked for two leases")
	}
	for end := at.Add(lease); at.Before(end); at = at.Add(tickEvery) {
		f.due(at)
	}
	if f.due(at.Add(tickEvery)); len(f.lost(open, at.Add(tickEvery))) != 1 {
		t.Error("not lost, though silent for a lease since")
	}
}

func TestInstances(t *testing.T) {
	f := newFleet(lease)
	for i, test := range []struct {
		instance string
		at       time.Duration
		want     news
	}{
		{"a", 0, news{fresh: true}},
		{"a", time.Second, news{}},
		{"b", 2 * time.Second, news{fresh: true}}, // started again
		{"b", 3 * time.Second, news{}},
		{"a", 4 * time.Second, news{fresh: true, shared: true}}, // the first still lives
		{"b", 5 * time.Second, news{fresh: true}},               // said once
	} {
		if got := f.beat(heartbeat("w", test.instance, 1, 1), noon.Add(test.at)); got != test.want {
			t.Errorf("heartbeat %d of instance %s: %+v, want %+v", i, test.instance, got, test.want)
		}
	}
}

func TestCapacity(t *testing.T) {
	spec := study.Study{Spec: study.Spec{Pool: study.DefaultPool}}
	r := &run{spec: record.Study{ID: "s", Definition: spec}}
	f := newFleet(lease)
	f.beat(heartbeat("a", "1", 4, 1), noon)
	f.beat(heartbeat("b", "1", 2, 2), noon)
	elsewhere := heartbeat("c", "1", 8, 8)
	elsewhere.Pool = "gpu"
	f.beat(elsewhere, noon)
	leaving := heartbeat("d", "1", 16, 16)
	leaving.Leaving = true
	f.beat(leaving, noon)
	check := func(what string, slots, free int) {
		t.Helper()
		if s, n := f.capacity(r); s != slots || n != free {
			t.Errorf("%s: %d slots, %d free; want %d, %d", what, s, n, slots, free)
		}
	}
	check("two workers", 6, 3)
	if !f.changed(r) || f.changed(r) {
		t.Error("a change is told once")
	}
	f.beat(heartbeat("a", "1", 4, 1), noon.Add(lease/2))
	if !f.changed(r) { // the engine's own count ran on since the last one
		t.Error("a heartbeat that says the same is told too")
	}
	f.beat(elsewhere, noon.Add(lease/2))
	if f.changed(r) {
		t.Error("a heartbeat in another pool is told")
	}
	r.avoid("a", "it fails")
	check("one is avoided", 2, 2)
	if f.due(noon.Add(lease + 1)); !f.changed(r) {
		t.Error("a worker's silence is not told")
	}
	check("the other is silent", 0, 0)
	f.beat(heartbeat("b", "1", 3, 1), noon.Add(2*lease))
	check("it is back, with another slot", 3, 1)
	moved := heartbeat("b", "1", 3, 1)
	moved.Pool = "gpu"
	f.beat(moved, noon.Add(2*lease))
	check("it has gone to another pool", 0, 0)
}

// The slots that are counted as heartbeats arrive are those of all workers that are neither
// silent nor leaving nor avoided, added up.
func TestCapacityIsASum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, now := newFleet(lease), noon
		names, pools := []string{"a", "b", "c"}, []string{"x", "y"}
		for range rapid.IntRange(1, 30).Draw(t, "heartbeats") {
			h := heartbeat(rapid.SampledFrom(names).Draw(t, "worker"), "1", rapid.IntRange(1, 4).Draw(t, "slots"), 0)
			h.Free = rapid.IntRange(0, h.Slots).Draw(t, "free")
			h.Pool, h.Leaving = rapid.SampledFrom(pools).Draw(t, "pool"), rapid.Bool().Draw(t, "leaving")
			now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "seconds")) * time.Second)
			f.beat(h, now)
			f.due(now)
		}
		r := &run{spec: record.Study{ID: "s", Definition: study.Study{Spec: study.Spec{Pool: rapid.SampledFrom(pools).Draw(t, "the study's pool")}}}}
		for _, name := range names {
			if rapid.Bool().Draw(t, "avoided") {
				r.avoid(name, "it fails")
			}
		}
		var slots, free int
		for name, m := range f.workers {
			if _, avoided := r.avoided[name]; !avoided && !m.beat.Leaving && !f.gone(m, now) && m.beat.Pool == r.pool() {
				slots, free = slots+m.beat.Slots, free+m.beat.Free
			}
		}
		if s, n := f.capacity(r); s != slots || n != free {
			t.Fatalf("%d slots, %d free; want %d, %d", s, n, slots, free)
		}
	})
}

// The studies that share a pool are told its capacity again, and no others: their engines
// do not see which slots the other ones take.
func TestStudiesThatShareAPoolAreTold(t *testing.T) {
	f := newFleet(lease)
	f.beat(heartbeat("w", "1", 1, 0), noon)
	in := func(id, pool string, state study.State) *run {
		spec := study.Spec{Pool: pool, Trial: study.TrialTemplate{Command: []string{"true"}}}
		return &run{spec: record.Study{ID: id, Definition: study.Study{Spec: spec}}, engine: &engine.Engine{}, status: record.Status{State: state}}
	}
	shared, other := in("a", "shared", study.Running), in("b", "shared", study.Running)
	alone, ended := in("c", "alone", study.Running), in("d", "alone", study.Completed)
	w := &watch{fleet: f, studies: &studies{loaded: map[string]*run{"a": shared, "b": other, "c": alone, "d": ended}}}
	for _, r := range w.studies.loaded {
		f.changed(r)
	}
	w.retellCapacity()
	if !f.changed(shared) || !f.changed(other) {
		t.Error("a study that shares its pool is not told")
	}
	if f.changed(alone) {
		t.Error("a study that runs alone in its pool is told")
	}
}

// Workers that are gone are removed, so that names used once do not accumulate.
func TestFleetForgets(t *testing.T) {
	f := newFleet(lease)
	f.listenSince(noon)
	for i := range 1000 {
		at := noon.Add(time.Duration(i) * time.Second)
		name := "w" + at.Format("150405")
		f.beat(heartbeat(name, "1", 1, 1), at)
		f.lost([]engine.OpenAttempt{{Attempt: attempt(i + 1), Worker: name}}, at)
		f.due(at)
	}
	if n := len(f.workers); n > 2*int(lease/time.Second)+1 {
		t.Errorf("%d workers are remembered", n)
	}
	// One worker stays, and its attempts end in other ways.
	for i := range 1000 {
		at := noon.Add(time.Hour + time.Duration(i)*time.Second)
		f.beat(heartbeat("stays", "1", 1, 1), at)
		f.lost([]engine.OpenAttempt{{Attempt: attempt(i + 1), Worker: "stays"}}, at)
		f.due(at)
	}
	if n := len(f.workers["stays"].missing); n > 2*int(lease/time.Second)+1 {
		t.Errorf("%d missing attempts are remembered", n)
	}
}

func TestRoster(t *testing.T) {
	r := newRoster(lease)
	for i, name := range []string{"b", "a", "c"} {
		r.hear(heartbeat(name, "1", 1, 1), noon.Add(time.Duration(i)*lease/2))
	}
	names := func(now time.Time) (list string) {
		for _, w := range r.list(now) {
			list += w.Worker
		}
		return list
	}
	if got := names(noon.Add(lease)); got != "abc" {
		t.Errorf("workers %q, want abc", got)
	}
	if got := names(noon.Add(lease + 1)); got != "ac" {
		t.Errorf("workers %q, want a and c: b is silent", got)
	}
	r.hear(heartbeat("d", "1", 1, 1), noon.Add(5*lease))
	if len(r.workers) != 1 {
		t.Errorf("%d workers are remembered, want d alone", len(r.workers))
	}
}
