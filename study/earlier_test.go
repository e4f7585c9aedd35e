package study_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

// Of 20 trials with the costs 19 … 0, eight are kept: the four best, the two that came last and are not among
// them, and two spread over the rest.
func TestRepresentative(t *testing.T) {
	costs := []float64{4, 3, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 2, 1, 0}
	got := study.Representative(costs, 8, func(v float64) float64 { return v })
	// The best are 3 (second), 2, 1 and 0; the latest others are 6 and 5; of the 14 others the first and the eighth.
	if want := []float64{4, 3, 13, 6, 5, 2, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	for n := range 30 {
		if got := study.Representative(costs, n, func(v float64) float64 { return v }); len(got) != min(n, len(costs)) {
			t.Errorf("%d of 20: %d kept", n, len(got))
		}
	}
}

func TestRecall(t *testing.T) {
	read := study.Earlier{Study: "march", Direction: study.Maximize, Trials: []study.EarlierTrial{{Value: 1}}}
	old := study.Spec{LearnFrom: []study.Earlier{read}}
	given := []study.Earlier{{Study: "february"}, {Study: "march"}}
	changed := study.Spec{LearnFrom: given}
	file := study.Earlier{Study: "may.csv", Trials: read.Trials}
	old.LearnFrom = append(old.LearnFrom, file, study.Earlier{Study: "june", Trials: read.Trials})
	changed.Recall(&old)
	if diff := cmp.Diff([]study.Earlier{{Study: "february"}, read, file}, changed.LearnFrom); diff != "" {
		t.Error(diff)
	}
	if given[1].Trials != nil {
		t.Error("the caller's list was changed")
	}
}
