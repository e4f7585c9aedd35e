package htmlreport

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
)

// played returns a study whose evaluations ended one a second, with these values; one that
// is below 0 failed.
func played(t *testing.T, direction study.Direction, values ...float64) *Source {
	t.Helper()
	src := source(t, 1)
	copied := *src.Study
	copied.Spec.Objective.Direction = direction
	src.Study = &copied
	var trials view.List
	src.View = view.Study{Study: "bowl", State: study.Completed}
	for i, v := range values {
		at := epoch.Add(time.Duration(i+1) * time.Second)
		trial := view.Trial{Trial: i + 1, State: study.TrialCompleted, Value: &v, Times: view.Times{Suggested: epoch, Ended: at, Folded: at}}
		if v < 0 {
			trial.State, trial.Value = study.TrialFailed, nil
		}
		trials = append(trials, trial)
	}
	src.Trials = trials
	return src
}

// The level is the worst of the best values, and each study reached it where it did.
func TestCompare(t *testing.T) {
	for direction, want := range map[study.Direction]*figure.Comparison{
		study.Minimize: {Metric: "loss", Direction: study.Minimize, Level: new(3.0), Studies: []figure.Compared{
			{Name: "a", Evaluations: 6, Seconds: 6, Reached: &figure.Improvement{Evaluation: 4, Seconds: 4, Value: 2.5, Trial: 4},
				Improvements: []figure.Improvement{{Evaluation: 1, Seconds: 1, Value: 7, Trial: 1}, {Evaluation: 3, Seconds: 3, Value: 5, Trial: 3},
					{Evaluation: 4, Seconds: 4, Value: 2.5, Trial: 4}, {Evaluation: 5, Seconds: 5, Value: 1, Trial: 5}}},
			{Name: "b", Evaluations: 3, Seconds: 3, Reached: &figure.Improvement{Evaluation: 2, Seconds: 2, Value: 3, Trial: 2},
				Improvements: []figure.Improvement{{Evaluation: 1, Seconds: 1, Value: 4, Trial: 1}, {Evaluation: 2, Seconds: 2, Value: 3, Trial: 2}}},
		}},
		study.Maximize: {Metric: "loss", Direction: study.Maximize, Level: new(6.0), Studies: []figure.Compared{
			{Name: "a", Evaluations: 6, Seconds: 6, Reached: &figure.Improvement{Evaluation: 1, Seconds: 1, Value: 7, Trial: 1},
				Improvements: []figure.Improvement{{Evaluation: 1, Seconds: 1, Value: 7, Trial: 1}, {Evaluation: 6, Seconds: 6, Value: 9, Trial: 6}}},
			{Name: "b", Evaluations: 3, Seconds: 3, Reached: &figure.Improvement{Evaluation: 3, Seconds: 3, Value: 6, Trial: 3},
				Improvements: []figure.Improvement{{Evaluation: 1, Seconds: 1, Value: 4, Trial: 1}, {Evaluation: 3, Seconds: 3, Value: 6, Trial: 3}}},
		}},
	} {
		a, b := played(t, direction, 7, -1, 5, 2.5, 1, 9), played(t, direction, 4, 3, 6)
		got, err := Compare([]string{"a", "b"}, []*Source{a, b})
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Studies {
			want.Studies[i].Study, want.Studies[i].State, want.Studies[i].Algorithm = "bowl", study.Completed, "hebo"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", direction, diff)
		}
		// The pictures hold each value until the last evaluation.
		for clock, end := range map[bool]float64{false: 6, true: 6} {
			points := got.Picture(clock).Studies[0].Points
			if last := points[len(points)-1]; last.X != end || last.Y != want.Studies[0].Improvements[len(want.Studies[0].Improvements)-1].Value {
				t.Errorf("%s, clock %v: the curve ends at %+v", direction, clock, last)
			}
		}
		var page strings.Builder
		if err := WriteComparison(&page, got, epoch, "test"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{fmt.Sprintf("loss = %g, which all of them reached", *want.Level), `<figure id="clock"`, `data-value="6"`} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("%s: the page lacks %q", direction, want)
			}
		}
	}
}

// A study without a value has no level; other objectives are refused.
func TestCompareWithout(t *testing.T) {
	some, none := played(t, study.Minimize, 2, 1), played(t, study.Minimize, -1, -1)
	got, err := Compare([]string{"some", "none"}, []*Source{some, none})
	if err != nil {
		t.Fatal(err)
	}
	if got.Level != nil || got.Studies[0].Reached != nil || got.Studies[1].Evaluations != 2 || len(got.Studies[1].Improvements) != 0 {
		t.Errorf("of a study without a value: %+v", got)
	}
	var page strings.Builder
	if err := WriteComparison(&page, got, epoch, "test"); err != nil ||
		!strings.Contains(page.String(), "Not every study has a completed trial yet.") {
		t.Errorf("the page does not say what is missing: %v", err)
	}
	_, err = Compare([]string{"some", "other"}, []*Source{some, played(t, study.Maximize, 1)})
	if err == nil || err.Error() != "study some has the objective minimize loss, study other has maximize loss: only studies with the same "+
		"objective can be compared" {
		t.Errorf("another direction: %v", err)
	}
}

// compromising returns a study of two objectives whose evaluations ended one a second with these
// values, and with these references.
func compromising(t *testing.T, references [2]float64, values ...[2]float64) *Source {
	t.Helper()
	src := played(t, study.Minimize, make([]float64, len(values))...)
	copied := *src.Study
	copied.Spec.Several = []study.Objective{
		{Metric: "loss", Direction: study.Minimize, Reference: &references[0]},
		{Metric: "size", Direction: study.Maximize, Reference: &references[1]},
	}
	src.Study = &copied
	for i, v := range values {
		trial := &list(src)[i]
		trial.Value, trial.Values = &v[0], v[:]
	}
	return src
}

// Studies of two objectives are compared by their hypervolumes: up to 4 and 1, the trials dominate
// rectangles of 3×1, 2×2 beyond it and 1×1 beyond these. Where their references differ, the one
// of size lies a tenth of the front's extent beyond its worst value, 2-0.3 = 1.7.
func TestCompareFronts(t *testing.T) {
	all := [][2]float64{{1, 2}, {3, 2}, {2, 4}, {3, 5}}
	same := [2]float64{4, 1}
	for _, c := range []struct {
		other     [2]float64
		reference float64
		want      [2][]float64
		level     int // where the first study reached what both have
	}{
		{same, 1, [2][]float64{{3, 7, 8}, {4}}, 3},
		{[2]float64{4, 0}, 1.7, [2][]float64{{0.9, 4.9, 5.9}, {3.3}}, 3},
	} {
		a, b := compromising(t, same, all...), compromising(t, c.other, [2]float64{3, 5})
		got, err := Compare([]string{"a", "b"}, []*Source{a, b})
		if err != nil {
			t.Fatal(err)
		}
		if got.Metric != "hypervolume" || got.Direction != study.Maximize || *got.Objectives[0].Reference != 4 ||
			math.Abs(*got.Objectives[1].Reference-c.reference) > 1e-12 {
			t.Errorf("compared are %+v", got)
		}
		for i, want := range c.want {
			var volumes []float64
			for _, at := range got.Studies[i].Improvements {
				volumes = append(volumes, at.Value)
			}
			if diff := cmp.Diff(want, volumes, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
				t.Errorf("study %d (-want +got):\n%s", i, diff)
			}
		}
		if at := got.Studies[0].Reached; at == nil || at.Evaluation != c.level || math.Abs(*got.Level-c.want[1][0]) > 1e-12 {
			t.Errorf("the first study reached %v at %+v", *got.Level, at)
		}
		var page strings.Builder
		if err := WriteComparison(&page, got, epoch, "test"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Hypervolume by evaluations",
			fmt.Sprintf("The hypervolume reaches up to loss = 4, size = %g.", c.reference)} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("the page lacks %q", want)
			}
		}
	}
}
