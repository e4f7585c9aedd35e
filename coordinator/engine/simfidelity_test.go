package engine

import (
	"bytes"
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// TestSimulatorOfFidelities plays schedules of studies whose trials are promoted.
func TestSimulatorOfFidelities(t *testing.T) {
	simulate(t, func(seed uint64) error { return newFidelityWorld(seed, 0).run() })
}

// TestSimulatorPromotes checks that the schedules have promotions to look at.
func TestSimulatorPromotes(t *testing.T) {
	needsAll(t)
	promoted, twice := 0, 0
	for seed := uint64(1); seed <= 40; seed++ {
		w := newFidelityWorld(seed, 0)
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		for number := range w.led.trials {
			var r record.Trial
			decode(w.led.trials[number], &r)
			if r.Predecessor > 0 {
				promoted++
			}
			if r.Rung > 2 && r.Predecessor > 0 {
				twice++
			}
		}
	}
	if promoted < 100 || twice < 10 {
		t.Errorf("%d trials were promoted, %d of them to the third level; want 100 and 10", promoted, twice)
	}
}

// newFidelityWorld draws a study with a fidelity, of workers or of clients, from a seed.
func newFidelityWorld(seed uint64, off safety) *world {
	w := newAnyWorld(seed, off)
	w.edit(func(s *study.Spec) {
		lo, hi, factor := 1.0, 9.0, 2+int(seed%2)
		w.objectives = w.objectives[:1]
		s.Objective, s.Several = w.objectives[0], nil // which levels need
		s.Limits, w.limits = nil, nil                 // which levels cannot have
		s.Parameters = append(s.Parameters, study.Parameter{Name: "epochs", Type: study.Fidelity, Min: &lo, Max: &hi, Reduction: &factor})
		s.Budget.MaxTrials += 15
		w.maxTrials = s.Budget.MaxTrials
	})
	return w
}

// promotions: a new trial continues another one exactly if the rule says so. The rule is
// counted here from the trials alone.
func (c *checker) promotions(w *world, out *Output) {
	f, ok := w.e.spec.space.Fidelity()
	if !ok {
		return
	}
	before := map[int]bool{} // the trials that this step made later than the one at hand
	var made []*record.Trial
	for i := range out.Trials {
		if t := &out.Trials[i]; t.Created > c.position {
			before[t.Number] = true
			made = append(made, t)
		}
	}
	for _, t := range made {
		switch {
		case t.Source == optimizer.SourcePromoted:
			c.promoted(w.e, t, before, *f.Reduction)
		case !byUser(t):
			for number := range c.trials {
				if from := c.trials[number]; c.due(w.e, &from, before, *f.Reduction) {
					c.fail("trial %d is new although trial %d is to be promoted", t.Number, number)
				}
			}
			if t.Rung != 1 || t.Predecessor != 0 {
				c.fail("trial %d is new and starts at rung %d, after trial %d", t.Number, t.Rung, t.Predecessor)
			}
		}
		delete(before, t.Number)
	}
}

// promoted checks a trial that continues another one.
func (c *checker) promoted(e *Engine, t *record.Trial, later map[int]bool, reduction int) {
	from, ok := c.trials[t.Predecessor]
	if !ok || from.Rung+1 != t.Rung ||
		e.spec.space.Searched().Key(e.spec.space.Configuration(from.Point)) != e.spec.space.Searched().Key(e.spec.space.Configuration(t.Point)) {
		c.fail("trial %d at rung %d continues trial %d at rung %d: %v after %v", t.Number, t.Rung, from.Number, from.Rung, t.Point, from.Point)
		return
	}
	if !c.due(e, &from, later, reduction) {
		c.fail("trial %d continues trial %d, which is not to be promoted", t.Number, from.Number)
	}
	if last := from.Checkpoint; t.Checkpoint != last {
		c.fail("trial %d continues from %q, and trial %d ended with %q", t.Number, t.Checkpoint, from.Number, last)
	}
	for number := range c.trials {
		other := c.trials[number]
		if other.Rung >= t.Rung && c.due(e, &other, later, reduction) {
			c.fail("trial %d at rung %d is promoted before trial %d at rung %d", from.Number, from.Rung, other.Number, other.Rung)
		}
		if other.Rung == from.Rung && c.due(e, &other, later, reduction) && precedes(&other, &from) {
			c.fail("trial %d is promoted before trial %d, which is better", from.Number, other.Number)
		}
	}
}

// due reports whether a trial is to be promoted, while the trials of later are not there.
func (c *checker) due(e *Engine, t *record.Trial, later map[int]bool, reduction int) bool {
	if t.State != study.TrialCompleted || t.Rung == len(e.ladder.rungs) || !within(e, *t) {
		return false
	}
	answered, better := 0, 0
	for number := range c.trials {
		other := c.trials[number]
		if later[number] {
			continue
		}
		if other.Predecessor == t.Number && other.State != study.TrialCancelled {
			return false
		}
		if other.Rung != t.Rung || !within(e, other) {
			continue
		}
		switch other.State {
		case study.TrialCompleted, study.TrialInfeasible, study.TrialPruned:
			answered++
		default:
			continue
		}
		if precedes(&other, t) {
			better++
		}
	}
	return better < answered/reduction
}

// precedes reports whether an answer is better than that of another trial, or as good and
// earlier.
func precedes(a, b *record.Trial) bool {
	cost := func(t *record.Trial) float64 {
		if t.State != study.TrialCompleted {
			return math.Inf(1)
		}
		return t.Values.First()
	}
	return cost(a) < cost(b) || cost(a) == cost(b) && a.Ended < b.Ended
}

// TestTheModelSeesOneLevel checks that the observations of a problem are of one level, and
// that its points have no fidelity.
func TestTheModelSeesOneLevel(t *testing.T) {
	for seed := uint64(1); seed <= uint64(fewer(30)); seed++ {
		w := newFidelityWorld(seed, 0)
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		if w.e == nil {
			continue
		}
		p := w.e.Problem()
		var rung int
		completed := map[int]int{}
		for _, r := range w.e.trials.all {
			if r.facts().state == study.TrialCompleted && !r.outside {
				completed[r.facts().rung]++
			}
		}
		want := 1
		for k := range completed {
			if completed[k] >= 1+3 { // one parameter is searched
				want = max(want, k)
			}
		}
		for _, o := range p.Observations {
			if rung = w.e.trials.all[o.Trial-1].facts().rung; rung != want {
				t.Fatalf("seed %d: trial %d is of level %d; want %d: %v", seed, o.Trial, rung, want, completed)
			}
			if err := p.Space.Check(o.Point); err != nil {
				t.Fatalf("seed %d: trial %d: %v", seed, o.Trial, err)
			}
		}
		if best, ok := w.e.Best(); ok {
			top := 0
			for k := range completed {
				top = max(top, k)
			}
			if best.Rung != top {
				t.Errorf("seed %d: the best trial is of level %d; want %d", seed, best.Rung, top)
			}
			for _, o := range w.e.FinalProblem().Observations {
				if got := w.e.trials.all[o.Trial-1].facts().rung; got != top {
					t.Errorf("seed %d: a recommendation looks at level %d; want %d", seed, got, top)
				}
			}
		}
		if !bytes.Equal(encode(p.Space.Parameters()), encode(w.e.spec.space.Searched().Parameters())) {
			t.Errorf("seed %d: the optimiser searches another space", seed)
		}
	}
}
