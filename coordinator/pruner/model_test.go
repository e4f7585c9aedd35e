package pruner_test

import (
	"math"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/curves"
	"github.com/fantasia-hpo/fantasia/study"
)

// asked returns the steps of a trial's reports at which a model is to judge it.
func asked(p pruner.Pruner, trial int, steps ...int64) (list []int64) {
	for _, step := range steps {
		if p.Report(trial, step, 1/float64(step)).Ask {
			list = append(list, step)
		}
	}
	return list
}

func upTo(last int64) (steps []int64) {
	for step := int64(1); step <= last; step++ {
		steps = append(steps, step)
	}
	return steps
}

// A model judges a trial once for each step of its grid, but at the last one, where nothing is left to save. It
// needs to know how long trials are, and a few reports.
func TestModelJudgesAtItsGrid(t *testing.T) {
	grid := curves.Grid(51)
	p := create(t, pruner.Model, map[string]any{"maxSteps": 51, "protect": 0, "maxProgress": 1}, study.Minimize)
	if got := asked(p, 1, upTo(7)...); got != nil {
		t.Errorf("seven reports: judged at %v", got)
	}
	if got, want := asked(p, 2, upTo(51)...), grid[:len(grid)-1]; !slices.Equal(got, want) {
		t.Errorf("judged at %v, want %v", got, want)
	}
	if got, want := asked(p, 3, 2, 8, 20, 21), []int64{8, 20}; !slices.Equal(got, want) {
		t.Errorf("reports at some steps: judged at %v, want %v", got, want)
	}

	p = create(t, pruner.Model, map[string]any{"protect": 0, "maxProgress": 1}, study.Minimize)
	if got := asked(p, 1, upTo(51)...); got != nil {
		t.Errorf("without a length: judged at %v", got)
	}
	p.End(1, true, 1./51)
	if got, want := asked(p, 2, upTo(51)...), grid[:len(grid)-1]; !slices.Equal(got, want) {
		t.Errorf("after a whole trial: judged at %v, want %v", got, want)
	}
	if p.Length() != 51 {
		t.Errorf("a trial has %d steps", p.Length())
	}
	if got := asked(p, 2, 60); got != nil {
		t.Errorf("beyond the end: judged at %v", got)
	}
	p.End(3, false, math.NaN())
	if got := asked(p, 3, upTo(20)...); got != nil {
		t.Errorf("a trial that has ended: judged at %v", got)
	}
}

// The limits that all rules have hold for a model too, if somebody sets them.
func TestModelHeedsLimits(t *testing.T) {
	p := create(t, pruner.Model, map[string]any{"maxSteps": 20, "minProgress": 0.5, "minCompleted": 1, "protect": 1}, study.Minimize)
	asked(p, 1, upTo(20)...)
	if got := asked(p, 2, upTo(20)...); got != nil {
		t.Errorf("nothing has completed: judged at %v", got)
	}
	p.End(1, true, 0.05)
	p.Report(3, 1, 0) // the best
	if got := asked(p, 4, upTo(20)...); len(got) == 0 || got[0] < 10 {
		t.Errorf("judged at %v, want half of the steps first", got)
	}
	for step := int64(2); step < 20; step++ {
		if p.Report(3, step, 0).Ask {
			t.Errorf("the best trial is judged at step %d", step)
		}
	}
}

// If reports have nothing to do with results, or mean the opposite, nobody is judged.
func TestModelNeedsReportsThatMeanSomething(t *testing.T) {
	for _, c := range []struct {
		name   string
		result func(trial int) float64
		want   bool
	}{
		{"on another scale", func(trial int) float64 { return math.Exp(float64(trial)) - 100 }, true},
		{"mostly in order", func(trial int) float64 { return float64([]int{1, 3, 2, 4, 6, 5}[trial-1]) }, true},
		{"the opposite", func(trial int) float64 { return -float64(trial) }, false},
		{"without order", func(trial int) float64 { return float64([]int{4, 1, 6, 2, 5, 3}[trial-1]) }, false},
		{"all the same", func(int) float64 { return 1 }, false},
	} {
		p := create(t, pruner.Model, map[string]any{"maxSteps": 20, "protect": 0}, study.Minimize)
		for trial := 1; trial <= 6; trial++ {
			for step := int64(1); step <= 20; step++ {
				p.Report(trial, step, float64(trial)+1/float64(step))
			}
			p.End(trial, true, c.result(trial))
		}
		if got := asked(p, 7, upTo(20)...); (len(got) > 0) != c.want {
			t.Errorf("%s: judged at %v", c.name, got)
		}
	}
}

// Three completed trials are enough to see that reports mean the opposite, and too few to see anything else.
func TestModelSeesOppositeReportsEarly(t *testing.T) {
	for _, c := range []struct {
		results []float64
		want    bool
	}{
		{[]float64{2, 1}, true}, {[]float64{3, 2, 1}, false}, {[]float64{3, 1, 2}, true},
		{[]float64{4, 3, 1, 2}, false}, {[]float64{2, 4, 1, 3}, true},
	} {
		p := create(t, pruner.Model, map[string]any{"maxSteps": 20, "protect": 0}, study.Minimize)
		for i, result := range c.results {
			for step := int64(1); step <= 20; step++ {
				p.Report(i+1, step, float64(i)+1/float64(step))
			}
			p.End(i+1, true, result)
		}
		if got := asked(p, 9, upTo(20)...); (len(got) > 0) != c.want {
			t.Errorf("results %v: judged at %v", c.results, got)
		}
	}
}

// Ends says how a trial that is expected to end at a cost would stand among those that have completed.
func TestEnds(t *testing.T) {
	p := create(t, pruner.Model, map[string]any{"maxSteps": 3}, study.Minimize)
	if completed, better, same := p.Ends(1); len(completed) > 0 || better > 0 || same {
		t.Errorf("nothing has completed: %v, %d, %v", completed, better, same)
	}
	for trial := 1; trial <= 4; trial++ {
		p.Report(trial, 1, float64(trial))
		p.Report(trial, 2, float64(trial)+1)
		p.End(trial, trial != 3, float64(trial)+float64(trial%2)) // the last or the best report
	}
	if completed, better, same := p.Ends(3); !slices.Equal(completed, []int{1, 2, 4}) || better != 2 || !same {
		t.Errorf("%v, %d, %v", completed, better, same)
	}
	p.Report(5, 1, 1)
	p.End(5, true, 0.3)
	if _, _, same := p.Ends(3); same {
		t.Error("a result that is no report is taken for one")
	}
	list := p.Curves()
	if len(list) != 5 || list[2].Trial != 3 || !slices.Equal(list[2].Reports, []curves.Report{{Step: 1, Cost: 3}, {Step: 2, Cost: 4}}) {
		t.Errorf("the curves are %v", list)
	}
}

// What was given away stays as it was, whatever is reported later; a trial that reports nothing more is not copied again.
func TestCurvesAreSnapshots(t *testing.T) {
	p := create(t, pruner.Model, map[string]any{"maxSteps": 1000}, study.Minimize)
	for step := int64(1); step <= 100; step++ {
		p.Report(1, step, 1/float64(step))
		p.Report(2, step, 2/float64(step))
	}
	p.End(1, true, 0.01)
	before := p.Curves()
	kept := slices.Clone(before[1].Reports)
	for step := int64(101); step <= 500; step++ { // its curve is thinned
		p.Report(2, step, 2/float64(step))
	}
	after := p.Curves()
	if !slices.Equal(before[1].Reports, kept) {
		t.Error("a curve that was given away has changed")
	}
	grown := after[1].Reports
	if last := grown[len(grown)-1]; last != (curves.Report{Step: 500, Cost: 2. / 500}) || len(grown) > pruner.MaxPoints {
		t.Errorf("the curve ends with %v after %d points", last, len(grown))
	}
	if &after[0].Reports[0] != &before[0].Reports[0] {
		t.Error("the curve of a trial that has ended is copied again")
	}
}

// BenchmarkCurves is what a question costs the leader's loop: 2,000 trials, eight of which have reported since the last one.
func BenchmarkCurves(b *testing.B) {
	p := create(b, pruner.Model, map[string]any{"maxSteps": 1000}, study.Minimize)
	step := int64(1)
	for ; step <= 100; step++ {
		for trial := range 2000 {
			p.Report(trial+1, step, 1/float64(step))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for trial := range 8 {
			p.Report(trial+1, step, 1/float64(step))
		}
		step++
		p.Curves()
	}
}
