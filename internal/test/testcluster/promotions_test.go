package testcluster

import (
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// TestPromotions holds that a wrong promotion is found. Three trials end at the lowest
// level, the best of them goes on, and so on until the third level.
func TestPromotions(t *testing.T) {
	trial := func(number, rung, predecessor int, created, ended int64, value float64) record.Trial {
		return record.Trial{
			Number: number, Rung: rung, Predecessor: predecessor, Created: created, Ended: ended,
			State: study.TrialCompleted, Values: study.Values{value},
		}
	}
	right := []record.Trial{
		trial(1, 1, 0, 1, 4, 3), trial(2, 1, 0, 2, 5, 1), trial(3, 1, 0, 3, 6, 2),
		trial(4, 2, 2, 7, 9, 1), // the best of three
		trial(5, 1, 0, 8, 10, 0),
		trial(6, 2, 5, 11, 12, 0.5), // better than the one that went on, and one of four
		trial(7, 1, 0, 13, 0, 0),
	}
	if err := Promotions(right, 3, 3); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func([]record.Trial){
		"a promoted trial that was not the best": func(all []record.Trial) { all[3].Predecessor = 3 },
		"a trial that was promoted twice":        func(all []record.Trial) { all[5].Predecessor = 2 },
		"a promotion that is missing":            func(all []record.Trial) { all[3].Predecessor, all[3].Rung = 0, 1 },
		"a promotion too early":                  func(all []record.Trial) { all[2].Ended = 8 },
		"a promotion too many":                   func(all []record.Trial) { all[6].Predecessor, all[6].Rung = 3, 2 },
		"a level that was left out":              func(all []record.Trial) { all[3].Rung = 3 },
	} {
		trials := slices.Clone(right)
		spoil(trials)
		if Promotions(trials, 3, 3) == nil {
			t.Errorf("%s is not found", name)
		}
	}
}
