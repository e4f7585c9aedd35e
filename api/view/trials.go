package view

import "iter"

// Trials are the trials of a study by number, each made when it is looked at: as a slice, those of a large study
// take a hundred megabytes.
type Trials interface {
	Len() int
	// At returns the trial at an index, from 0. It MUST NOT be changed, and no longer be used than it is needed.
	At(i int) Trial
}

// List is Trials in memory.
type List []Trial

// Len implements Trials.
func (l List) Len() int { return len(l) }

// At implements Trials.
func (l List) At(i int) Trial { return l[i] }

// Each returns all trials, with their indices. A trial is valid until the next one.
func Each(trials Trials) iter.Seq2[int, *Trial] {
	return func(yield func(int, *Trial) bool) {
		for i := range trials.Len() {
			if t := trials.At(i); !yield(i, &t) {
				return
			}
		}
	}
}
