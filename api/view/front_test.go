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
		{Metric: "error", Direction: study.Minimize, Reference: new(1.0)}, {Metric: "recall", Direction: study.Maximize, Reference: new(0.0)},
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
	want := 1*0.25 + 0.8*(0.75-0.25) + (1-0.9)*(1-0.75)
	if got := view.Hypervolume(spec.Several, front); got == nil || *got < want-1e-12 || *got > want+1e-12 {
		t.Errorf("the hypervolume is %v, want %v", got, want)
	}
	spec.Several[1].Reference = nil
	if got := view.Hypervolume(spec.Several, front); got != nil {
		t.Errorf("without a reference the hypervolume is %v", *got)
	}
	if got := view.FrontOf(&study.Spec{}, nil); got != nil {
		t.Errorf("one objective has the front %v", got)
	}
}
