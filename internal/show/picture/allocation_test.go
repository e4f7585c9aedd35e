package picture_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

// columns are the columns of an allocation, as they are read off its axes.
func columns(t *testing.T, a *picture.Allocation) (found []column) {
	t.Helper()
	x, y := axis(t, a, "x", false), axis(t, a, "y", false)
	for _, class := range []string{"bar c0", "bar c1", "bar c2", "bar c3", "bar c4", "bar c5"} {
		for _, n := range elements(t, a, "rect", class) {
			left, top := n.number(t, "x"), n.number(t, "y")
			round := func(v float64) float64 { return math.Round(v*10) / 10 }
			found = append(found, column{class[4:], round(x.readAt(left + n.number(t, "width")/2)),
				round(y.readAt(top + n.number(t, "height"))), round(y.readAt(top))})
		}
	}
	return found
}

// column has a colour, its place along the trials, and where it begins and ends along the steps.
type column struct {
	Color    string
	X        float64
	From, To float64
}

// A column has the place of its trial's number, and reaches over the steps that the trial ran. What cannot be drawn is left out.
func TestAllocation(t *testing.T) {
	a := &picture.Allocation{Length: 20, Missing: 1, Trials: []picture.Allotted{
		{Trial: 1, State: picture.Completed, To: 20}, {Trial: 2, State: picture.Pruned, To: 5}, {Trial: 3, State: picture.Continued, To: 8},
		{Trial: 5, State: picture.Failed, To: 2}, {Trial: 6, State: picture.Completed, From: 8, To: 20},
		{Trial: 7, State: picture.Running, To: 11}, {Trial: 8, State: picture.Running, To: math.NaN()}, {Trial: 9, State: picture.Running},
	}}
	want := []column{{"c0", 1, 0, 20}, {"c0", 6, 8, 20}, {"c1", 5, 0, 2}, {"c2", 7, 0, 11}, {"c3", 2, 0, 5}, {"c4", 3, 0, 8}}
	if diff := cmp.Diff(want, columns(t, a)); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	svg := string(a.SVG(picture.Frame{}))
	for _, part := range []string{"steps (1 trials of unknown steps are left out)", "completed (2)", "stopped early, then continued (1)",
		"a whole trial (20 steps)", "trial 6: from step 8 to 20, completed"} {
		if !strings.Contains(svg, part) {
			t.Errorf("it lacks %q", part)
		}
	}
	if svg := string((&picture.Allocation{}).SVG(picture.Frame{})); !strings.Contains(svg, "No trial has reported steps.") {
		t.Errorf("of nothing: %s", svg)
	}
}

// Of very many trials, neighbours share a column: its parts are as high as the means of their steps, so that the areas of the columns
// stand for steps.
func TestAllocationOfManyTrials(t *testing.T) {
	const n = 100_000
	a := &picture.Allocation{Length: 40}
	for i := range n { // a quarter of the trials run to the end, the others for a tenth of the steps
		trial := picture.Allotted{Trial: i + 1, State: picture.Pruned, To: 4}
		if i%4 == 0 {
			trial.State, trial.To = picture.Completed, 40
		}
		a.Trials = append(a.Trials, trial)
	}
	svg := a.SVG(picture.Frame{})
	if len(svg) > 200_000 {
		t.Errorf("the picture has %d bytes", len(svg))
	}
	got := columns(t, a)
	if len(got) < 300 || len(got) > 600 {
		t.Errorf("%d parts of columns", len(got))
	}
	for _, c := range got[:len(got)/2-1] {
		if c.Color != "c0" || c.From != 0 || math.Abs(c.To-10) > 0.2 {
			t.Fatalf("the completed trials of a column: %+v; want a quarter of 40 steps", c)
		}
	}
	for _, c := range got[len(got)/2 : len(got)-1] {
		if c.Color != "c3" || math.Abs(c.From-10) > 0.2 || math.Abs(c.To-13) > 0.2 {
			t.Fatalf("the stopped trials of a column: %+v; want three quarters of 4 steps above them", c)
		}
	}
}
