package figure_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/study"
)

// stoppedStudy has, by hand: trials 1 and 2 of 20 steps, 3 stopped at 5, 4 stopped at 8 and continued by 6 from its checkpoint, 5
// failed after 2 steps, and 7, which runs. What 2 and 7 reported is not read.
func stoppedStudy(spec *study.Spec) *figure.Study {
	s := &figure.Study{Spec: spec}
	add := func(r record.Trial, first, last int64) {
		t := figure.Of(spec, nil, &r)
		s.All = append(s.All, t)
		if last > 0 {
			c := view.Curve{Metric: "loss"}
			for step := first; step <= last; step++ {
				c.Steps, c.Values = append(c.Steps, step), append(c.Values, 1/float64(step+1))
			}
			s.Read(t, []view.Curve{{Metric: "other", Steps: []int64{500}, Values: []float64{1}}, c})
		}
	}
	stopped := func(n int, step int64) record.Trial {
		return record.Trial{Number: n, State: study.TrialPruned, Stopped: &record.Stopped{Step: step}}
	}
	add(completed(1, 1, 0.1), 1, 20)
	add(completed(2, 2, 0.2), 0, 0)
	add(stopped(3, 5), 0, 0)
	add(stopped(4, 8), 1, 8)
	add(record.Trial{Number: 5, State: study.TrialFailed}, 1, 2)
	again := completed(6, 6, 0.05)
	again.Predecessor = 4
	add(again, 9, 20)
	add(record.Trial{Number: 7, State: study.TrialRunning}, 0, 0)
	s.Trials = s.All
	return s
}

// The steps that were saved are those up to the last one of stopped trials that nobody continues.
func TestStepsSaved(t *testing.T) {
	spec := &study.Spec{Objective: study.Objective{Metric: "loss", Direction: study.Minimize}}
	s := stoppedStudy(spec)
	want := "1 trial was stopped early and did not run 15 of 20 steps (75%): a whole trial has 20, as many as the longest completed trial " +
		"reported. Stopped trials that were continued later do not count (1)."
	if got := s.Saved(); got != want {
		t.Errorf("learnt from trials: %q", got)
	}
	all := s.Allocation()
	if len(all) != 1 {
		t.Fatalf("%d figures", len(all))
	}
	p, ok := all[0].Pictures[0].(*picture.Allocation)
	if !ok {
		t.Fatalf("%T", all[0].Pictures[0])
	}
	if diff := cmp.Diff(&picture.Allocation{Length: 20, Missing: 1, Trials: []picture.Allotted{
		{Trial: 1, State: picture.Completed, To: 20}, {Trial: 2, State: picture.Completed, To: 20}, {Trial: 3, State: picture.Pruned, To: 5},
		{Trial: 4, State: picture.Continued, To: 8}, {Trial: 5, State: picture.Failed, To: 2},
		{Trial: 6, State: picture.Completed, From: 8, To: 20},
	}}, p); diff != "" {
		t.Errorf("the picture (-want +got):\n%s", diff)
	}
	if lines := strings.Join(all[0].Lines, "\n"); !strings.Contains(lines, "The reports of 1 completed trials were not read") ||
		!strings.Contains(lines, want) {
		t.Errorf("its lines: %s", lines)
	}

	spec.EarlyStopping = &study.EarlyStopping{Name: "model", Settings: map[string]any{"maxSteps": 50}}
	if got := stoppedStudy(spec).Saved(); !strings.HasPrefix(got, "1 trial was stopped early and did not run 45 of 50 steps (90%): a whole "+
		"trial has 50, as maxSteps says.") {
		t.Errorf("with maxSteps: %q", got)
	}
}

// Where it is not known how many steps a trial has, nothing is said of those saved; and a study that stops no trial has no picture.
func TestStepsUnknown(t *testing.T) {
	spec := &study.Spec{Objective: study.Objective{Metric: "loss", Direction: study.Minimize}}
	r := record.Trial{Number: 1, State: study.TrialPruned, Stopped: &record.Stopped{Step: 5}}
	s := &figure.Study{Spec: spec, All: []*figure.Trial{figure.Of(spec, nil, &r)}}
	s.Trials = s.All
	if got := s.Saved(); got != "" {
		t.Errorf("of unknown length: %q", got)
	}
	if all := s.Allocation(); len(all) != 1 || len(all[0].Lines) != 0 {
		t.Errorf("of unknown length: %+v", all)
	}
	c := completed(1, 1, 2)
	s = &figure.Study{Spec: spec, All: []*figure.Trial{figure.Of(spec, nil, &c)}}
	s.Trials = s.All
	s.Read(s.All[0], []view.Curve{{Metric: "loss", Steps: []int64{0, 9}, Values: []float64{3, 2}}})
	if got := fmt.Sprint(s.Saved(), s.Allocation()); got != "[]" {
		t.Errorf("without stopping: %s", got)
	}
}
