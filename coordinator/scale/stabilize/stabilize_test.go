package stabilize

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Up at once; down only when fewer have sufficed for ten seconds, and then to
// the most that was needed in them.
func TestDecide(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var w Window
	for _, step := range []struct{ at, needed, current, want int }{
		{0, 0, 3, 3},  // a new leader does not know what was needed before
		{5, 0, 3, 3},  //
		{10, 0, 3, 0}, // nothing for ten seconds
		{11, 4, 0, 4}, // up at once
		{15, 2, 4, 4},
		{18, 1, 4, 4},
		{21, 1, 4, 4}, // the need of 11 is still within
		{22, 1, 4, 2}, // the most since is that of 15
		{25, 1, 2, 2},
		{26, 1, 2, 1},
		{27, 9, 1, 9},
		{28, 0, 7, 7}, // somebody took two away: they stay away
		{38, 0, 7, 0},
	} {
		if got := w.Decide(start.Add(time.Duration(step.at)*time.Second), step.needed, step.current, 10*time.Second); got != step.want {
			t.Errorf("at %d s, %d needed of %d: %d, want %d", step.at, step.needed, step.current, got, step.want)
		}
	}
}

// The window against its definition, by a list of all needs.
func TestDecideByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		const down = 10 * time.Second
		var w Window
		var all []need
		now, current := start, rapid.IntRange(0, 9).Draw(t, "current")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			needed := rapid.IntRange(0, 9).Draw(t, "needed")
			all = append(all, need{now, needed})
			most := 0
			for _, n := range all {
				if now.Sub(n.at) <= down {
					most = max(most, n.workers)
				}
			}
			want := current
			if needed > current {
				want = needed
			} else if now.Sub(start) >= down {
				want = min(current, most)
			}
			if got := w.Decide(now, needed, current, down); got != want {
				t.Fatalf("after %v, %d needed of %d: %d, want %d", all, needed, current, got, want)
			}
			current = want
			now = now.Add(time.Duration(rapid.IntRange(0, 6000).Draw(t, "ms")) * time.Millisecond)
		}
	})
}
