package diagnosis_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/optimizer"
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
	now := began.Add(after * time.Second)
	p, err := diagnosis.NewPace(t.Context(), s, view.List(trials), now)
	if err != nil {
		t.Fatal(err)
	}
	left := p.Left(view.List(trials), 60, 4, now)
	if truth := last - after; math.Abs(left.Seconds()-truth) > 0.25*truth {
		t.Errorf("%v are left, in truth %.0f s; %d trials have begun", left, truth, len(trials))
	}
	// Trials that were added, or cancelled, are none of the budget's; those that have ended since it was read count once.
	extra := slices.Clone(trials)
	for i, state := range []study.TrialState{study.TrialCompleted, study.TrialCancelled} {
		extra = append(extra, view.Trial{Trial: 90 + i, State: state, Source: optimizer.SourceAdded, Parameters: view.Parameters{"x": 0.9}})
	}
	if again := p.Left(view.List(extra), 60, 4, now); again != left {
		t.Errorf("with an added and a cancelled trial %v are left, want %v", again, left)
	}
	if _, err := diagnosis.NewPace(t.Context(), s, view.List(trials[:3]), now); !errors.Is(err, diagnosis.ErrNoPace) {
		t.Errorf("of three trials: %v", err)
	}
}

// Trials at a higher level of a fidelity take as many times as long: the estimates know the level.
func TestFidelity(t *testing.T) {
	const of, after = 120, 400.
	s := named("levels", nil)
	s.Spec.Budget.MaxTrials = of
	s.Spec.Parameters = []study.Parameter{
		{Name: "x", Type: study.Float, Min: new(0.0), Max: new(1.0), Scale: study.Linear},
		{Name: "epochs", Type: study.Fidelity, Min: new(1.0), Max: new(27.0), Reduction: new(3)},
	}
	takes := func(x float64, epochs int64) float64 { return 5 * float64(epochs) * math.Exp(x) }
	free, rng := [4]float64{}, rand.New(rand.NewPCG(1, 2))
	var trials view.List
	var last float64
	for i := range of {
		x, epochs := rng.Float64(), int64(1)
		for n := i + 1; epochs < 27 && n%3 == 0; n /= 3 { // each third one goes on
			epochs *= 3
		}
		slot := 0
		for k, at := range free {
			if at < free[slot] {
				slot = k
			}
		}
		start, end := free[slot], free[slot]+takes(x, epochs)
		free[slot], last = end, max(last, end)
		if start > after {
			continue
		}
		one := view.Trial{Trial: i + 1, State: study.TrialRunning, Parameters: view.Parameters{"x": x, "epochs": epochs}}
		one.Times.Started = began.Add(time.Duration(start * float64(time.Second)))
		if end <= after {
			one.State, one.Times.Ended = study.TrialCompleted, began.Add(time.Duration(end*float64(time.Second)))
		}
		trials = append(trials, one)
	}
	now := began.Add(time.Duration(after * float64(time.Second)))
	p, err := diagnosis.NewPace(t.Context(), s, trials, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, epochs := range []int64{1, 3, 9, 27} {
		one := view.Trial{Trial: 999, State: study.TrialPending, Parameters: view.Parameters{"x": 0.4, "epochs": epochs}}
		if e, truth := p.Takes(&one, now), takes(0.4, epochs); e == nil || e.Median < truth/1.4 || e.Median > truth*1.4 {
			t.Errorf("at %d epochs %+v is expected, in truth %.0f s", epochs, e, truth)
		}
	}
	if left, truth := p.Left(trials, of, 4, now).Seconds(), last-after; math.Abs(left-truth) > 0.35*truth {
		t.Errorf("%.0f s are left, in truth %.0f s; of %d trials %d have begun", left, truth, of, len(trials))
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
	if left := p.Left(stopped, len(stopped)+6, 4, now); left < 20*time.Second || left > 10*time.Minute {
		t.Errorf("of trials that fail, %v are left", left)
	}
}

// An earlier study on a quicker machine says which trials take long before four of the study's own have ended.
func TestPaceLearnsFromEarlierStudies(t *testing.T) {
	s, trials, _ := paced(8, 1000)
	now := began.Add(1000 * time.Second)
	trials = trials[:3]
	trials[2].State, trials[2].Parameters, trials[2].Times.Ended = study.TrialRunning, view.Parameters{"x": 0.95}, time.Time{}
	trials[2].Times.Started = now
	if _, err := diagnosis.NewPace(t.Context(), s, view.List(trials), now); !errors.Is(err, diagnosis.ErrNoPace) {
		t.Errorf("after two trials: %v", err)
	}
	e := study.Earlier{Study: "march"}
	for i := range 20 {
		x := float64(i) / 19
		e.Trials = append(e.Trials, study.EarlierTrial{Parameters: map[string]any{"x": x}, Value: x, Seconds: 2 * math.Exp(3*x)})
	}
	s.Spec.LearnFrom = []study.Earlier{e}
	p, err := diagnosis.NewPace(t.Context(), s, view.List(trials), now)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Takes(&trials[2], now).Median, 10*math.Exp(3*0.95); math.Abs(math.Log(got/want)) > 0.2 {
		t.Errorf("a trial is expected to take %.0f s, want about %.0f", got, want)
	}
}
