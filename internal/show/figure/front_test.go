package figure_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/study"
)

// compromises is a study of three trials on the front, one that is dominated, one outside of the
// space, and one that failed.
func compromises() *figure.Study {
	s := &figure.Study{Spec: &study.Spec{Several: []study.Objective{
		{Metric: "error", Direction: study.Minimize, Reference: new(1.0)}, {Metric: "speed", Direction: study.Maximize},
	}}}
	add := func(values ...float64) {
		n := len(s.Trials) + 1
		s.Trials = append(s.Trials,
			figure.Of(&study.Spec{}, nil, &record.Trial{Number: n, State: study.TrialCompleted, Ended: int64(n), Values: values}))
	}
	add(0.9, 900)
	add(0.1, 100)
	add(0.5, 90)
	add(0.2, 700)
	add(0, 5000)
	s.Trials[4].Outside = true
	s.Trials = append(s.Trials, figure.Of(&study.Spec{}, nil, &record.Trial{Number: 6, State: study.TrialFailed, Ended: 6}))
	return s
}

func numbers(trials []*figure.Trial) (list []int) {
	for _, t := range trials {
		list = append(list, t.Number)
	}
	return list
}

// The front is sorted by the first objective; its knee is the trial that has most of both, and
// trials outside of the space are not on it. Another objective can be the first.
func TestFront(t *testing.T) {
	s := compromises()
	list, knee := s.Front()
	if got := numbers(list); !slices.Equal(got, []int{2, 4, 1}) || knee == nil || knee.Number != 4 {
		t.Errorf("the front is %v with the knee %+v; want 2, 4, 1 and 4", got, knee)
	}
	p := s.Pair(0, 1)
	if len(p.Optimal) != 3 || len(p.Dominated) != 1 || p.Dominated[0] != (picture.Point{X: 0.5, Y: 90, Trial: 3}) || !p.Line {
		t.Errorf("the picture has the front %v, others %v and a line: %v", p.Optimal, p.Dominated, p.Line)
	}
	// and once in the legend
	if text := p.Text(60); strings.Count(text, "●") != 2+1 || strings.Count(text, "◆") != 1+1 || strings.Count(text, "·") != 1+1 {
		t.Errorf("the terminal shows:\n%s", text)
	}
	chosen, place, err := figure.Chosen(&study.Study{Spec: *s.Spec}, "speed")
	if err != nil || place != 1 || chosen.Spec.Several[0].Metric != "speed" || chosen.Spec.Several[1].Metric != "error" ||
		s.Spec.Several[0].Metric != "error" {
		t.Fatalf("with speed first the study is %+v at %d: %v", chosen, place, err)
	}
	for i := range s.Trials {
		s.Trials[i] = s.Trials[i].First(place)
	}
	s.Spec = &chosen.Spec
	if list, _ = s.Front(); !slices.Equal(numbers(list), []int{1, 4, 2}) || list[0].Value != 900 {
		t.Errorf("by speed, the front is %v", numbers(list))
	}
	if _, _, err := figure.Chosen(chosen, "sped"); err == nil || !strings.Contains(err.Error(), "want one of speed, error") {
		t.Errorf("an unknown objective: %v", err)
	}
}

// The reference of the error is given; that of the speed lies a tenth of the front's extent
// below it: 100 - 0.1·800 = 20.
func TestHypervolume(t *testing.T) {
	f := compromises().Hypervolume()
	if f == nil || !strings.HasPrefix(f.Lines[0], "The hypervolume reaches up to error = 1, speed = 20.") ||
		!strings.Contains(f.Lines[0], "no reference") {
		t.Fatalf("the figure is %+v", f)
	}
	got := f.Pictures[0].(*picture.Chart).Series[0].Points
	// Trial 1: 0.1×880. Trial 2 adds 0.9×80 - 0.1×80. Trial 4 adds what it dominates beyond
	// both: 0.8×680 less 0.1×680 by trial 1 and 0.8×80 by trial 2, of which 0.1×80 is both's.
	steps := []float64{88, 88 + 64, 88 + 64 + 544 - 68 - 64 + 8}
	for i, v := range steps {
		if i >= len(got) || got[i].Y < v-1e-9 || got[i].Y > v+1e-9 {
			t.Fatalf("the steps are %v, want %v", got, steps)
		}
	}
	if got[0].X != 1 || got[1].X != 2 || got[2].X != 4 || got[len(got)-1].X != 6 {
		t.Errorf("the steps are at %v", got)
	}
}

// Three objectives have a figure for each pair, and axes of parallel coordinates.
func TestThreeObjectives(t *testing.T) {
	s := compromises()
	s.Spec.Several = append(s.Spec.Several, study.Objective{Metric: "memory", Direction: study.Minimize})
	for i, t := range s.Trials {
		if t.Completed() {
			t.Values = append(t.Values, float64(i))
		}
	}
	var ids []string
	for _, f := range s.Fronts() {
		ids = append(ids, f.ID)
	}
	if want := []string{"front-0-1", "front-0-2", "front-1-2", "hypervolume"}; !slices.Equal(ids, want) {
		t.Errorf("the figures are %v, want %v", ids, want)
	}
	p := s.Parallel().Pictures[0].(*picture.Parallel)
	if len(p.Parameters) != 2 || p.Parameters[0].Name != "speed, higher is better" || p.Parameters[0].High != 5000 ||
		p.Evaluations[3].At[1] != 3 {
		t.Errorf("the axes are %+v, the fourth evaluation %+v", p.Parameters, p.Evaluations[3])
	}
	if s.Spec.Several = nil; s.Fronts() != nil {
		t.Error("one objective has a front")
	}
}
