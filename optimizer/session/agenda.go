package session

import (
	"cmp"
	"math"
	"slices"
)

// Agenda holds what runs side by side in virtual time, and gives it back in the order in which it
// ends. What ends together comes back in the order of its numbers, so that a run does not depend on
// how its trials were added. The zero value is empty. It is not safe for concurrent use.
type Agenda[T any] struct{ entries []entry[T] }

type entry[T any] struct {
	end    float64
	number int
	what   T
}

// Add adds a trial, or whatever runs, that ends at a time. Its number MUST differ from those of all others that run.
func (a *Agenda[T]) Add(end float64, number int, what T) {
	added := entry[T]{end, number, what}
	at, _ := slices.BinarySearchFunc(a.entries, added, func(x, y entry[T]) int {
		return cmp.Or(cmp.Compare(x.end, y.end), cmp.Compare(x.number, y.number))
	})
	a.entries = slices.Insert(a.entries, at, added)
}

// Len returns how many run.
func (a *Agenda[T]) Len() int { return len(a.entries) }

// Soonest returns when the next one ends, +Inf if none runs.
func (a *Agenda[T]) Soonest() float64 {
	if len(a.entries) == 0 {
		return math.Inf(1)
	}
	return a.entries[0].end
}

// Next takes out what ends next, and returns when. Something MUST run.
func (a *Agenda[T]) Next() (what T, end float64) {
	first := a.entries[0]
	a.entries = slices.Delete(a.entries, 0, 1)
	return first.what, first.end
}

// Rest takes out all, in the order in which it ends.
func (a *Agenda[T]) Rest() (all []T) {
	for _, e := range a.entries {
		all = append(all, e.what)
	}
	a.entries = nil
	return all
}
