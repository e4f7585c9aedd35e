package lease

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/study"
)

func TestCapacity(t *testing.T) {
	avoided := map[string]string{}
	w := NewWorkers(length)
	w.Beat(heartbeat("a", "1", 4, 1), noon)
	w.Beat(heartbeat("b", "1", 2, 2), noon)
	elsewhere := heartbeat("c", "1", 8, 8)
	elsewhere.Pool = "gpu"
	w.Beat(elsewhere, noon)
	leaving := heartbeat("d", "1", 16, 16)
	leaving.Leaving = true
	w.Beat(leaving, noon)
	check := func(what string, slots, free int) {
		t.Helper()
		if s, n := w.Slots(study.DefaultPool, avoided); s != slots || n != free {
			t.Errorf("%s: %d slots, %d free; want %d, %d", what, s, n, slots, free)
		}
	}
	check("two workers", 6, 3)
	before := w.Version(study.DefaultPool)
	changed := func() bool {
		now := w.Version(study.DefaultPool)
		defer func() { before = now }()
		return now != before
	}
	if before == 0 || changed() {
		t.Error("the pool changes without a reason")
	}
	w.Beat(heartbeat("a", "1", 4, 1), noon.Add(length/2))
	if !changed() { // the engine's own count ran on since the last one
		t.Error("a heartbeat that says the same changes nothing")
	}
	w.Beat(elsewhere, noon.Add(length/2))
	if changed() {
		t.Error("a heartbeat in another pool changes this one")
	}
	avoided["a"] = "it fails"
	check("one is avoided", 2, 2)
	if w.Due(noon.Add(length + 1)); !changed() {
		t.Error("a worker's silence is not told")
	}
	check("the other is silent", 0, 0)
	w.Beat(heartbeat("b", "1", 3, 1), noon.Add(2*length))
	check("it is back, with another slot", 3, 1)
	moved := heartbeat("b", "1", 3, 1)
	moved.Pool = "gpu"
	w.Beat(moved, noon.Add(2*length))
	check("it has gone to another pool", 0, 0)
}

// The slots that are counted as heartbeats arrive are those of all workers that are neither
// silent nor leaving nor avoided, added up.
func TestCapacityIsASum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, now := NewWorkers(length), noon
		names, pools := []string{"a", "b", "c"}, []string{"x", "y"}
		for range rapid.IntRange(1, 30).Draw(t, "heartbeats") {
			h := heartbeat(rapid.SampledFrom(names).Draw(t, "worker"), "1", rapid.IntRange(1, 4).Draw(t, "slots"), 0)
			h.Free = rapid.IntRange(0, h.Slots).Draw(t, "free")
			h.Pool, h.Leaving = rapid.SampledFrom(pools).Draw(t, "pool"), rapid.Bool().Draw(t, "leaving")
			now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "seconds")) * time.Second)
			w.Beat(h, now)
			w.Due(now)
		}
		pool, avoided := rapid.SampledFrom(pools).Draw(t, "the study's pool"), map[string]string{}
		for _, name := range names {
			if rapid.Bool().Draw(t, "avoided") {
				avoided[name] = "it fails"
			}
		}
		var slots, free int
		for name, m := range w.workers {
			if _, no := avoided[name]; !no && !m.beat.Leaving && !w.silent(m, now) && m.beat.Pool == pool {
				slots, free = slots+m.beat.Slots, free+m.beat.Free
			}
		}
		if s, n := w.Slots(pool, avoided); s != slots || n != free {
			t.Fatalf("%d slots, %d free; want %d, %d", s, n, slots, free)
		}
	})
}
