package engine

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// book holds the study's trials.
type book struct {
	trials   []*trial       // by number, from 1 at index 0
	open     []*trial       // not in a terminal state, by number
	pending  []*trial       // waiting for their next attempt, longest first; stale ones are skipped
	wishes   []*trial       // enqueued by users and never handed out, oldest first
	ended    []*trial       // those that are not cancelled, in the order in which they ended
	requests map[string]int // trials by the request id that made them
}

// numbered returns the trial with a number, counted from 1; nil if there is none.
func (b *book) numbered(n int) *trial {
	if n < 1 || n > len(b.trials) {
		return nil
	}
	return b.trials[n-1]
}

// add adds the next trial, which is open.
func (b *book) add(t *trial) {
	b.trials = append(b.trials, t)
	b.open = append(b.open, t)
	b.remember(t)
}

// remember remembers the request that made a trial.
func (b *book) remember(t *trial) {
	if id := t.rec.RequestID; id != "" {
		b.requests[id] = t.rec.Number
	}
}

// drop removes a trial from the open ones.
func (b *book) drop(t *trial) {
	byNumber := func(t *trial, number int) int { return t.rec.Number - number }
	if i, ok := slices.BinarySearchFunc(b.open, t.rec.Number, byNumber); ok {
		b.open = slices.Delete(b.open, i, i+1)
	}
}

// active returns how many open trials have been handed out at least once. Those that
// users have enqueued do not count against the parallelism before.
func (b *book) active() int { return len(b.open) - len(b.wishes) }

// waiting reports whether a trial waits to be handed out.
func (b *book) waiting(parallelism int) bool {
	return len(b.wishes) > 0 && b.active() < parallelism ||
		slices.ContainsFunc(b.pending, func(t *trial) bool { return t.facts().state == study.TrialPending })
}

// lastFailed returns the failed trial that ended last; nil if none has failed.
func (b *book) lastFailed() *trial {
	for _, t := range slices.Backward(b.ended) {
		if t.facts().state == study.TrialFailed {
			return t
		}
	}
	return nil
}

// failedAtFirst reports whether the first trials that ended have all failed.
func (b *book) failedAtFirst() bool {
	return len(b.ended) >= firstFailures &&
		!slices.ContainsFunc(b.ended[:firstFailures], func(t *trial) bool { return t.facts().state != study.TrialFailed })
}

// firstOf returns the number of the trial that began a trial's configuration: its own,
// unless it was promoted. All of them share a seed and a directory of checkpoints.
func (b *book) firstOf(t *trial) int {
	n := t.rec.Number
	for before := t.rec.Predecessor; before > 0; before = b.trials[n-1].facts().predecessor {
		n = before
	}
	return n
}
