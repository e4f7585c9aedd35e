package diagnosis_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/study"
)

// began is when the studies of these tests began.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// paced is a study whose trials take 10·exp(3x) seconds, four at once: of so many, those that have begun after some seconds. It
// returns when the last of all ends.
func paced(of int, after float64) (s *study.Study, trials []view.Trial, last float64) {
	s = named("paced", nil)
	s.Spec.Budget.MaxTrials = of
	s.Spec.Parameters = []study.Parameter{{Name: "x", Type: study.Float, Min: new(0.0), Max: new(1.0), Scale: study.Linear}}
	free, rng := [4]float64{}, rand.New(rand.NewPCG(1, 2))
	for i := range of {
		x := rng.Float64()
		slot := 0
		for k, at := range free {
			if at < free[slot] {
				slot = k
			}
		}
		start, end := free[slot], free[slot]+10*math.Exp(3*x)
		free[slot], last = end, max(last, end)
		if start > after {
			continue
		}
		t := view.Trial{Trial: i + 1, State: study.TrialRunning, Parameters: view.Parameters{"x": x}}
		t.Times.Started = began.Add(time.Duration(start * float64(time.Second)))
		if end <= after {
			t.State, t.Times.Ended = study.TrialCompleted, began.Add(time.Duration(end*float64(time.Second)))
		}
		trials = append(trials, t)
	}
	return s, trials, last
}

// After 200 s mostly short trials have ended, and the four that run are long. What is left is near the truth, and the pace of
// those that have ended is not.
func TestLeft(t *testing.T) {
	const after = 200
	s, trials, last := paced(60, after)
	ended := 0
	for _, one := range trials {
		if one.State.Terminal() {
			ended++
		}
	}
	now := began.Add(after * time.Second)
	p, err := diagnosis.NewPace(t.Context(), s, view.List(trials), now)
	if err != nil {
		t.Fatal(err)
	}
	left := p.Left(view.List(trials), 60-ended, 4, now)
	if truth := last - after; math.Abs(left.Seconds()-truth) > 0.25*truth {
		t.Errorf("%v are left, in truth %.0f s; %d trials have ended", left, truth, ended)
	}
	s.Spec.Parameters = append(s.Spec.Parameters, study.Parameter{Name: "epochs", Type: study.Fidelity})
	if _, err := diagnosis.NewPace(t.Context(), s, view.List(trials), now); !errors.Is(err, diagnosis.ErrNoPace) {
		t.Errorf("of a study with a fidelity: %v", err)
	}
	s.Spec.Parameters = s.Spec.Parameters[:1]
	if _, err := diagnosis.NewPace(t.Context(), s, view.List(trials[:3]), now); !errors.Is(err, diagnosis.ErrNoPace) {
		t.Errorf("of three trials: %v", err)
	}
}

// A trial that runs takes what its parameters say, and at least as long as it has run. Trials that were stopped would have taken
// longer than they did.
func TestTakes(t *testing.T) {
	const after = 400
	s, trials, _ := paced(60, after)
	now := began.Add(after * time.Second)
	stopped := view.List{}
	for _, one := range trials {
		if one.State.Terminal() && one.Times.Ended.Sub(one.Times.Started) > 40*time.Second {
			one.State, one.Times.Ended = study.TrialPruned, one.Times.Started.Add(40*time.Second)
		}
		stopped = append(stopped, one)
	}
	one := view.Trial{Trial: 99, State: study.TrialRunning, Parameters: view.Parameters{"x": 0.7}}
	one.Times.Started = now.Add(-5 * time.Second)
	truth := 10 * math.Exp(2.1) // 82 s
	for name, c := range map[string]struct {
		trials view.Trials
		within float64
	}{"all completed": {view.List(trials), 1.2}, "some stopped": {stopped, 1.7}} {
		p, err := diagnosis.NewPace(t.Context(), s, c.trials, now)
		if err != nil {
			t.Fatal(err)
		}
		e := p.Takes(&one, now)
		if e == nil || e.Median < truth/c.within || e.Median > truth*c.within || e.Low >= e.Median || e.Median >= e.High {
			t.Errorf("%s: %+v is expected, in truth %.0f s", name, e, truth)
		}
		longer := one
		longer.Times.Started = now.Add(-300 * time.Second)
		if e := p.Takes(&longer, now); e == nil || e.Low < 300 {
			t.Errorf("%s: after 300 s, %+v is expected", name, e)
		}
		longer.Parameters = view.Parameters{"x": 7.0}
		if e := p.Takes(&longer, now); e != nil {
			t.Errorf("%s: outside of the space %+v is expected", name, e)
		}
	}
	for i := range stopped { // nothing completes
		if stopped[i].State == study.TrialCompleted {
			stopped[i].State = study.TrialFailed
		}
	}
	p, err := diagnosis.NewPace(t.Context(), s, stopped, now)
	if err != nil {
		t.Fatal(err)
	}
	if e := p.Takes(&one, now); e != nil {
		t.Errorf("though no trial has completed, %+v is expected", e)
	}
	if left := p.Left(stopped, 10, 4, now); left < 20*time.Second || left > 10*time.Minute {
		t.Errorf("of trials that fail, %v are left", left)
	}
}
