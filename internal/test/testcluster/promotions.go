package testcluster

import (
	"errors"
	"fmt"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// Promotions says what is wrong with the promotions of a study with a fidelity that has so many
// levels and promotes one trial in reduction; nil if nothing is. The objective is minimised, and
// no trial was cancelled or came from a user. It reads the rule off the trials alone:
// each new trial continues the best trial that was due when it was made, at the highest
// level that had one, and begins a configuration if there was none.
func Promotions(trials []record.Trial, levels, reduction int) error {
	var wrong []error
	for i := range trials {
		t := &trials[i]
		want := 0
		for rung := levels - 1; rung > 0 && want == 0; rung-- {
			want = due(trials, rung, reduction, t.Created)
		}
		if t.Predecessor != want {
			wrong = append(wrong, fmt.Errorf("trial %d continues trial %d, want %d (0 is none)", t.Number, t.Predecessor, want))
		}
		rung := 1
		if t.Predecessor > 0 {
			rung = trials[t.Predecessor-1].Rung + 1
		}
		if t.Rung != rung {
			wrong = append(wrong, fmt.Errorf("trial %d is at level %d, want %d", t.Number, t.Rung, rung))
		}
	}
	return errors.Join(wrong...)
}

// due returns the trial of a level that was to be promoted at a position of the ledger, 0
// if there was none.
func due(trials []record.Trial, rung, reduction int, at int64) int {
	promoted := map[int]bool{}
	var answered []*record.Trial
	for i := range trials {
		t := &trials[i]
		if t.Created < at {
			promoted[t.Predecessor] = true
		}
		if t.Rung == rung && t.Ended > 0 && t.Ended < at && t.State != study.TrialFailed {
			answered = append(answered, t)
		}
	}
	best := 0
	for _, t := range answered {
		ahead := 0
		for _, other := range answered {
			if before(other, t) {
				ahead++
			}
		}
		if t.State == study.TrialCompleted && !promoted[t.Number] && ahead < len(answered)/reduction &&
			(best == 0 || before(t, &trials[best-1])) {
			best = t.Number
		}
	}
	return best
}

// before orders the answers of a level: completed trials by value, then the others, and equal
// ones by when they ended.
func before(a, b *record.Trial) bool {
	if x, y := a.State == study.TrialCompleted, b.State == study.TrialCompleted; x != y {
		return x
	} else if x && a.Values.First() != b.Values.First() {
		return a.Values.First() < b.Values.First()
	}
	return a.Ended < b.Ended
}
