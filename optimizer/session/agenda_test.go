package session

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// An agenda gives back what a sorted list has first, whatever was added in between.
func TestAgendaIsASortedList(t *testing.T) {
	type trial struct {
		End    float64
		Number int
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var agenda Agenda[trial]
	var want []trial
	for number := range 500 {
		added := trial{float64(rng.IntN(40)), 500 - number} // many end together
		agenda.Add(added.End, added.Number, added)
		want = append(want, added)
		slices.SortFunc(want, func(a, b trial) int { return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Number, b.Number)) })
		if agenda.Soonest() != want[0].End || agenda.Len() != len(want) {
			t.Fatalf("%d run and the next ends at %g, want %d and %g", agenda.Len(), agenda.Soonest(), len(want), want[0].End)
		}
		if rng.IntN(3) > 0 {
			continue
		}
		got, end := agenda.Next()
		if got != want[0] || end != want[0].End {
			t.Fatalf("next is %v at %g, want %v", got, end, want[0])
		}
		want = want[1:]
	}
	if diff := gocmp.Diff(want, agenda.Rest()); diff != "" {
		t.Errorf("the rest (-want +got):\n%s", diff)
	}
	if !math.IsInf(agenda.Soonest(), 1) {
		t.Errorf("an empty agenda says that something ends at %g", agenda.Soonest())
	}
}
