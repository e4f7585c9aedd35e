package view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// The front is sorted by the first objective, and the trial below the line through its ends is
// the knee.
func TestFrontHasAKnee(t *testing.T) {
	spec := &study.Spec{Several: []study.Objective{
		{Metric: "error", Direction: study.Minimize}, {Metric: "recall", Direction: study.Maximize},
	}}
	front := view.FrontOf(spec, []record.Trial{
		{Number: 1, Values: study.Values{0.9, 1}}, {Number: 2, Values: study.Values{0.2, 0.75}}, {Number: 3, Values: study.Values{0, 0.25}},
	})
	if len(front) != 3 || front[0].Trial != 3 || front[1].Trial != 2 || front[2].Trial != 1 {
		t.Fatalf("the front is %+v", front)
	}
	if front[0].Knee || !front[1].Knee || front[2].Knee {
		t.Errorf("the knee is not trial 2: %+v", front)
	}
	if got := view.FrontOf(&study.Spec{}, nil); got != nil {
		t.Errorf("one objective has the front %v", got)
	}
}

// A recommended front says what is expected of each objective, and what is left out.
func TestExpectedFront(t *testing.T) {
	front := []optimizer.Expected{
		{Trial: 3, Means: []float64{0.125, 7}, SDs: []float64{0.01, 0}},
		{Trial: 8, Means: []float64{0.25, 5}, SDs: []float64{0, 0.5}, Knee: true}, {Trial: 4},
	}
	got := view.ExpectedFront([]string{"error", "seconds"}, front, 2)
	want := []string{"trial 3: error = 0.125 ± 0.01, seconds = 7", "trial 8 (knee): error = 0.25, seconds = 5 ± 0.5", "and 1 more"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := view.Recommended(8, 0.25, 0.5, front); got != "trial 8, of 3 on the front of the models" {
		t.Error(got)
	}
	if got := view.Recommended(8, 0.25, 0.5, nil); got != "trial 8 (0.25 ± 0.5)" {
		t.Error(got)
	}
}
