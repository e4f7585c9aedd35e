package engine

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// simLongest is what an evaluation is expected to take at most, in the simulated world.
const simLongest = 6 * time.Second

// simTakes is what an evaluation is expected to take: the model of the simulated world.
func simTakes(p study.Point) time.Duration {
	x, _ := study.Number(p["x"])
	if k, ok := study.Number(p["k"]); ok {
		x = k * 0.37
	}
	return time.Second + time.Duration((x-float64(int(x)))*float64(simLongest-time.Second))
}

// TestSimulatorOfTime plays schedules of studies that only time bounds: no trial is begun that is expected to end too late,
// whatever fails, and nothing else ends the study early.
func TestSimulatorOfTime(t *testing.T) {
	simulate(t, func(seed uint64) error { return newTimedWorld(seed, 0).run() })
}

// newTimedWorld draws a study that only time bounds, of workers or of clients, from a seed.
func newTimedWorld(seed uint64, off safety) *world {
	w := newAnyWorld(seed, off)
	w.edit(func(s *study.Spec) {
		s.Budget.MaxTrials, s.Budget.MaxDuration = 0, study.Duration(time.Duration(6+seed%16)*time.Second)
	})
	w.learns()
	return w
}

// timed adds to an answer what its evaluations are expected to take, and leaves out those that would end too late; with faults
// sometimes not, as if the time had passed since.
func (w *world) timed(ev *Suggested) {
	if ev.Ask.Problem.Time == nil {
		return
	}
	for i := range ev.Suggestions {
		ev.Suggestions[i].Seconds = simTakes(ev.Suggestions[i].Point).Seconds()
	}
	if ev.Err != nil || w.faults && w.chance(2) {
		return
	}
	left := ev.Ask.Problem.Time.Left
	ev.Suggestions = slices.DeleteFunc(ev.Suggestions, func(s optimizer.Suggestion) bool { return s.Seconds > left })
	if len(ev.Suggestions) == 0 {
		ev.Err = optimizer.ErrNoTime
	}
}

// inTime: an evaluation that the optimiser wanted was expected to end in time when its trial was made. With a fidelity nothing is
// known of that.
func (c *checker) inTime(w *world, t *record.Trial) {
	budget := &w.e.spec.Definition.Spec.Budget
	if left := w.e.life.left(); budget.OfTime() && w.e.ladder.rungs == nil && !byUser(t) && simTakes(t.Point) > left {
		c.fail("trial %d is begun with %v left, and is expected to take %v", t.Number, left, simTakes(t.Point))
	}
}

// late reports whether a study may have ended because no other trial was expected to end in time.
func (c *checker) late(w *world, s *record.Status) bool {
	budget := &w.e.spec.Definition.Spec.Budget
	return budget.OfTime() && time.Duration(budget.MaxDuration)-s.Ran < simLongest
}

// timedRig is a study of 10 s with one trial at a time.
func timedRig(t *testing.T) *rig {
	t.Helper()
	spec := newSpec(0, 0, 1)
	spec.Definition.Spec.Budget.MaxDuration = study.Duration(10 * time.Second)
	return newRig(t, spec, Settings{})
}

// The study ends with a sentence once no other trial is expected to end in time, and the next leader ends it as well. A trial
// that ended meanwhile may change that.
func TestEndsWhenNoOtherEndsInTime(t *testing.T) {
	r := timedRig(t)
	step := func(ev Event) Output {
		out := r.e.Step(ev)
		r.ledger.commit(&out)
		return out
	}
	step(Capacity{At: epoch, Slots: 2, Free: 2})
	ask := r.e.suggestions.ask
	if ask == nil || ask.Problem.Time == nil || *ask.Problem.Time != (optimizer.Time{Budget: 10, Left: 10}) {
		t.Fatalf("the request is %+v, want one with 10 of 10 s left", ask)
	}
	slow := optimizer.Suggestion{Point: study.Point{"x": 0.5}, Source: optimizer.SourceModel, Seconds: 11}
	if out := step(Suggested{At: epoch, Ask: ask, Suggestions: []optimizer.Suggestion{slow}}); len(out.Trials) > 0 {
		t.Fatalf("a trial of 11 s is begun with 10 s left: %+v", out.Trials)
	}
	ask = r.e.suggestions.ask
	quick := optimizer.Suggestion{Point: study.Point{"x": 0.25}, Source: optimizer.SourceModel, Seconds: 9}
	out := step(Suggested{At: epoch, Ask: ask, Suggestions: []optimizer.Suggestion{quick}})
	if len(out.Trials) != 1 || out.Trials[0].Ask.Time == nil || out.Trials[0].Ask.Time.Left != 10 {
		t.Fatalf("the trials are %+v, want one whose request had 10 s", out.Trials)
	}
	e, _, err := r.ledger.load(&counterIDs{prefix: "b"}, Settings{}, epoch.Add(4*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	e.Step(Tick{At: epoch.Add(4 * time.Second)})
	e.Step(CancelTrial{At: epoch.Add(4 * time.Second), Trial: 1, Reason: "simulated"})
	e.Step(Capacity{At: epoch.Add(5 * time.Second), Slots: 2, Free: 2})
	if e.suggestions.ask == nil {
		t.Fatal("the next leader asks for nothing")
	}
	e.Step(Suggested{At: epoch.Add(5 * time.Second), Ask: e.suggestions.ask, Err: optimizer.ErrNoTime})
	if s := e.Status(); s.State != study.Failed || !strings.Contains(s.Reason, "no other trial is expected to end in the") ||
		!strings.Contains(s.Reason, "of 10s (maxDuration)") {
		t.Errorf("the study is %s: %s", s.State, s.Reason)
	}
}

// A study with maxTrials is never ended early, and its optimiser is told of no time.
func TestBudgetOfTrialsKnowsNoTime(t *testing.T) {
	spec := newSpec(0, 5, 1)
	spec.Definition.Spec.Budget.MaxDuration = study.Duration(10 * time.Second)
	r := newRig(t, spec, Settings{})
	r.e.Step(Capacity{At: epoch, Slots: 1, Free: 1})
	ask := r.e.suggestions.ask
	if ask == nil || ask.Problem.Time != nil || ask.Problem.MaxTrials != 5 {
		t.Fatalf("the request is %+v, want one of 5 trials without a time", ask)
	}
	slow := optimizer.Suggestion{Point: study.Point{"x": 0.5}, Source: optimizer.SourceModel, Seconds: 11}
	if out := r.e.Step(Suggested{At: epoch, Ask: ask, Suggestions: []optimizer.Suggestion{slow}}); len(out.Trials) != 1 {
		t.Errorf("the trials are %+v, want one", out.Trials)
	}
}

// Where the optimiser models the time of evaluations, it is told how long pending trials have run, and the record of a trial that it
// made says so. Any other is told nothing.
func TestPendingTrialsHaveRun(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*study.Spec)
		want map[int]float64
	}{
		"cooled":       {func(s *study.Spec) { s.Algorithm.Settings = map[string]any{"cost": "cooled"} }, map[int]float64{1: 2.5}},
		"time":         {func(s *study.Spec) { s.Budget = study.Budget{MaxDuration: study.Duration(time.Minute)} }, map[int]float64{1: 2.5}},
		"none":         {func(s *study.Spec) { s.Algorithm.Settings = map[string]any{"cost": "none"} }, nil},
		"no setting":   {func(*study.Spec) {}, nil},
		"another cost": {func(s *study.Spec) { s.Cost = &study.Cost{Metric: "dollars"} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			spec := newSpec(0, 5, 2)
			c.edit(&spec.Definition.Spec)
			r := newRig(t, spec, Settings{})
			r.step(Capacity{At: r.now, Slots: 2, Free: 2})
			r.suggest(0.5)
			r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(1, 1), Worker: "a"}})
			r.step(Alive{At: r.now, Worker: "a", Attempt: r.id(1, 1)})
			r.after(2500 * time.Millisecond)
			asked := map[int]float64{}
			for _, p := range r.e.Problem().Pending {
				if p.Seconds > 0 {
					asked[p.Trial] = p.Seconds
				}
			}
			if !maps.Equal(asked, c.want) {
				t.Errorf("pending trials have run %v s, want %v", asked, c.want)
			}
			ask := &Ask{Problem: r.e.Problem()}
			if got := ask.record(false).Ran; !maps.Equal(got, c.want) {
				t.Errorf("the record says %v, want %v", got, c.want)
			}
		})
	}
}

// A job waits for its program, so that only a worker who says that the program has started tells how long it runs. Without a job it
// runs as long as its worker evaluates it. The first word counts: a worker that starts again may not know it at once.
func TestPendingJobsHaveRun(t *testing.T) {
	for name, c := range map[string]struct {
		site  *messaging.Site
		begun []bool // what is said a second, two and three after the claim
		want  float64
	}{
		"no job":          {nil, []bool{true, true, true}, 3},
		"says nothing":    {nil, []bool{false, false, false}, 3},
		"only a node":     {&messaging.Site{Node: "n17"}, []bool{false, true, true}, 3},
		"waits":           {&messaging.Site{Job: "trial-1"}, []bool{false, false, false}, 0},
		"begins":          {&messaging.Site{Job: "trial-1"}, []bool{false, true, true}, 2},
		"does not know":   {&messaging.Site{Job: "trial-1"}, []bool{false, true, false}, 2},
		"begins at first": {&messaging.Site{Job: "trial-1"}, []bool{true, true, true}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			spec := newSpec(0, 5, 2)
			spec.Definition.Spec.Algorithm.Settings = map[string]any{"cost": "cooled"}
			r := newRig(t, spec, Settings{})
			r.step(Capacity{At: r.now, Slots: 2, Free: 2})
			r.suggest(0.5)
			r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(1, 1), Worker: "a", Site: c.site}})
			for _, begun := range c.begun {
				r.after(time.Second)
				r.step(Alive{At: r.now, Worker: "a", Attempt: r.id(1, 1), Begun: begun})
			}
			r.restart() // the next leader knows it, too
			r.after(time.Second)
			if p := r.e.Problem().Pending; len(p) != 1 || p[0].Seconds != c.want {
				t.Errorf("pending are %+v, want one that has run for %g s", p, c.want)
			}
		})
	}
}

// What one observation has concluded, the next one may change.
func TestLateIsReconsidered(t *testing.T) {
	var x exhaustion
	ask := &Ask{Problem: &optimizer.Problem{}, observed: 3}
	if !x.conclude(optimizer.ErrNoTime, ask) || !x.over || !x.late {
		t.Fatalf("no time gives %+v", x)
	}
	if x.reconsider(3); !x.over {
		t.Error("the same observations change the conclusion")
	}
	if x.reconsider(4); x.over || x.late {
		t.Error("a newer observation does not change it")
	}
	if x.conclude(errors.New("other"), ask) {
		t.Error("another error ends the study")
	}
}
