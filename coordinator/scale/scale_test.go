package scale

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNeeded(t *testing.T) {
	target := Target{Min: 1, Max: 5, Slots: 4}
	for useful, want := range map[int]int{0: 1, 1: 1, 4: 1, 5: 2, 8: 2, 9: 3, 20: 5, 1000: 5} {
		if got := target.Needed(useful); got != want {
			t.Errorf("%d useful slots need %d pods, want %d", useful, got, want)
		}
	}
	if got := (&Target{Min: 0, Max: 5, Slots: 4}).Needed(0); got != 0 {
		t.Errorf("nothing useful needs %d pods", got)
	}
}

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
					most = max(most, n.pods)
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

func TestRead(t *testing.T) {
	read := func(text string) (Targets, error) {
		path := filepath.Join(t.TempDir(), "scale.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Read(path)
	}
	got, err := read("default: {namespace: n, kind: Deployment, name: w, min: 0, max: 3, slots: 2}\ngpu: {namespace: n, kind: StatefulSet, name: g, min: 1, max: 1, slots: 1, downAfter: 30s}\n")
	want := Targets{
		"default": {Namespace: "n", Kind: Deployment, Name: "w", Max: 3, Slots: 2, DownAfter: study.Duration(DefaultDownAfter)},
		"gpu":     {Namespace: "n", Kind: StatefulSet, Name: "g", Min: 1, Max: 1, Slots: 1, DownAfter: study.Duration(30 * time.Second)},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for text, says := range map[string]string{
		"default: {namespace: n, kind: Pod, name: w, max: 3, slots: 2}":                        `kind is "Pod"`,
		"default: {namespace: n, kind: Deployment, name: w, min: 4, max: 3, slots: 2}":         "min is 4 and max 3",
		"default: {namespace: n, kind: Deployment, name: w, max: 3}":                           "slots is 0",
		"default: {kind: Deployment, max: 3, slots: 1}":                                        "namespace is missing",
		"default: {namespace: n, kind: Deployment, name: w, max: 3, slots: 2, replicas: 1}":    "replicas",
		"default: {namespace: n, kind: Deployment, name: w, max: 3, slots: 2, downAfter: -1s}": "downAfter is -1s",
		"- default": "want a map from pools",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}
