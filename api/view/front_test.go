package view_test

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
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
