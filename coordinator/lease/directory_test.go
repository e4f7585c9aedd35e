package lease

import (
	"testing"
	"time"
)

func TestDirectory(t *testing.T) {
	d := NewDirectory(length)
	for i, name := range []string{"b", "a", "c"} {
		d.hear(heartbeat(name, "1", 1, 1), noon.Add(time.Duration(i)*length/2))
	}
	names := func(now time.Time) (list string) {
		for _, w := range d.List(now) {
			list += w.Worker
		}
		return list
	}
	if got := names(noon.Add(length)); got != "abc" {
		t.Errorf("workers %q, want abc", got)
	}
	if got := names(noon.Add(length + 1)); got != "ac" {
		t.Errorf("workers %q, want a and c: b is silent", got)
	}
	d.hear(heartbeat("d", "1", 1, 1), noon.Add(5*length))
	if len(d.workers) != 1 {
		t.Errorf("%d workers are remembered, want d alone", len(d.workers))
	}
}
