// Package stabilize decides how many workers a pool gets while the number that is needed goes up and
// down: it adds some at once, and removes some after fewer have sufficed for a while.
package stabilize

import "time"

// Window remembers the numbers of workers needed recently. The zero value is ready for use, by one
// goroutine.
type Window struct {
	// began is the time of the first need.
	began time.Time
	// needs decrease: an older need that is not larger does not matter.
	needs []need
}

type need struct {
	at      time.Time
	workers int
}

// Decide records the number of workers needed now, and returns the number to set: more
// than current at once if more are needed, fewer if fewer were needed for all of
// downAfter.
func (w *Window) Decide(now time.Time, needed, current int, downAfter time.Duration) int {
	if w.began.IsZero() {
		w.began = now
	}
	for len(w.needs) > 0 && w.needs[len(w.needs)-1].workers <= needed {
		w.needs = w.needs[:len(w.needs)-1]
	}
	w.needs = append(w.needs, need{now, needed})
	for now.Sub(w.needs[0].at) > downAfter {
		w.needs = w.needs[1:]
	}
	switch most := w.needs[0].workers; {
	case needed > current:
		return needed
	case now.Sub(w.began) < downAfter:
		return current // an earlier leader may have seen a need
	default:
		return min(current, most)
	}
}
