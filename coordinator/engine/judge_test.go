package engine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/judge"
	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// judgedRig returns a study of three workers whose trials of 20 steps a model judges, and in which
// a trial has completed with this value: its last report was 5.
func judgedRig(t *testing.T, value float64) *rig {
	t.Helper()
	return judgedRigOf(t, value, func(*study.Spec) {})
}

// judgedRigOf is judgedRig of a study that was changed. Each report has a loss and an error.
func judgedRigOf(t *testing.T, value float64, edit func(s *study.Spec)) *rig {
	t.Helper()
	spec := newSpec(0, 10, 3)
	spec.Definition.Spec.EarlyStopping = &study.EarlyStopping{Name: pruner.Model, Metric: "loss", Settings: map[string]any{"protect": 0}}
	edit(&spec.Definition.Spec)
	r := newRig(t, spec, Settings{Pruner: pruner.NewFor})
	r.step(Capacity{At: r.now, Slots: 3, Free: 3})
	for trial := 1; trial <= 3; trial++ {
		r.suggest(float64(trial) / 8)
		r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(trial, 1), Worker: "w", At: r.now}})
	}
	for step := int64(1); step <= 20; step++ {
		if out := r.report(1, 1, step, map[string]float64{"loss": 25 - float64(step), "error": 1 / float64(step)}); out.Judge != nil {
			t.Fatalf("a trial is judged at step %d, and nobody knows how many there are", step)
		}
	}
	res := r.result("w", 1, 1, messaging.OutcomeCompleted)
	res.Values = study.Values{value}
	r.step(Finished{At: r.now, Result: res})
	return r
}

func (r *rig) asks(trial int, step int64) *Judge {
	r.t.Helper()
	out := r.report(trial, 1, step, map[string]float64{"loss": 50 - float64(step), "error": 1 / float64(step)})
	if out.Judge == nil || out.Judge.Trial != trial || out.Judge.Step != step || out.Judge.Attempt != r.id(trial, 1) {
		r.t.Fatalf("a report of trial %d at step %d asks %+v", trial, step, out.Judge)
	}
	return out.Judge
}

// A question has all that the model needs. The answer is durable in the trial's record before the
// worker is told, and the next question follows it.
func TestAModelJudgesTrials(t *testing.T) {
	r := judgedRig(t, 5)
	asked := r.asks(2, 4)
	if asked.Last != 20 || len(asked.Curves) != 2 || len(asked.Problem.Pending) != 2 || len(asked.Problem.Observations) != 1 {
		t.Errorf("the question is %+v", asked)
	}
	for _, step := range []int64{4, 6} {
		if out := r.report(3, 1, step, map[string]float64{"loss": 30}); out.Judge != nil {
			t.Error("two questions are asked at once")
		}
	}
	out := r.step(Judged{At: r.now, Judge: asked, Answer: judge.Answer{Stop: true, Reason: "no hope", Cost: 40,
		Expected: &record.Expected{Level: 4}}})
	got, _ := r.e.Trial(2)
	if s := got.Stopped; s == nil || s.Expected == nil || s.Expected.Level != 4 ||
		s.Step != 4 || s.Reason != "no hope" || !slices.Equal(s.Likely, study.Values{40}) ||
		!slices.Equal(s.Values, study.Values{46}) {
		t.Errorf("stopped by %+v", s)
	}
	if len(out.Trials) != 1 || out.Trials[0].Stopped == nil || len(out.Cancels) != 1 || !out.Cancels[0].Prune {
		t.Errorf("the answer leads to %+v", out)
	}
	// Of a trial that waits the latest report counts, and it waits once.
	if out.Judge == nil || out.Judge.Trial != 3 || out.Judge.Step != 6 {
		t.Fatalf("then %+v is asked", out.Judge)
	}
	out = r.step(Judged{At: r.now, Judge: out.Judge, Answer: judge.Answer{Cost: 1}})
	if got, _ := r.e.Trial(3); got.Stopped != nil || out.Judge != nil {
		t.Errorf("a trial that goes on is %+v, and %+v is asked", got, out.Judge)
	}
	if out := r.report(2, 1, 10, map[string]float64{"loss": 3}); out.Judge != nil {
		t.Error("a trial that is stopped is judged again")
	}
	if out := r.report(3, 1, 9, map[string]float64{"loss": 3}); out.Judge == nil {
		t.Error("a trial that goes on is judged once only")
	}
}

// The optimiser is told where trials that run are expected to end, as the model said last, unless what they report is
// something else than what they end with.
func TestTheOptimiserIsToldWhatIsForeseen(t *testing.T) {
	running := []judge.Foreseen{{Trial: 2, Cost: 7}, {Trial: 3, Cost: math.Inf(1)}}
	for name, c := range map[string]struct {
		value float64 // with which a trial ends whose last report was 5
		edit  func(s *study.Spec)
		want  map[int]study.Values
	}{
		"the objective":  {5, func(*study.Spec) {}, map[int]study.Values{2: {7}}},
		"maximised":      {5, func(s *study.Spec) { s.Objective.Direction = study.Maximize }, map[int]study.Values{2: {-7}}},
		"another scale":  {0.5, func(*study.Spec) {}, nil},
		"another metric": {5, func(s *study.Spec) { s.EarlyStopping.Metric = "error" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := judgedRigOf(t, c.value, c.edit)
			r.step(Judged{At: r.now, Judge: r.asks(2, 4), Answer: judge.Answer{Running: running}})
			told := map[int]study.Values{}
			for _, p := range r.e.suggestions.newAsk(1).Problem.Pending {
				if p.Likely != nil {
					told[p.Trial] = p.Likely
				}
			}
			if !reflect.DeepEqual(told, c.want) && len(told)+len(c.want) > 0 {
				t.Errorf("told %v, want %v", told, c.want)
			}
			ask := r.e.suggestions.newAsk(1)
			if got := ask.record(false).Likely; !reflect.DeepEqual(got, c.want) {
				t.Errorf("the record says %v, want %v", got, c.want)
			}
			// The next answer says nothing of trials that have ended since.
			r.step(Judged{At: r.now, Judge: r.asks(2, 8), Answer: judge.Answer{}})
			if p := r.e.suggestions.newAsk(1).Problem.Pending[0]; p.Likely != nil {
				t.Errorf("an old answer counts: %+v", p)
			}
		})
	}
}

// The optimiser is told the looks at all curves. A trial's record gets them when it ends, and the next leader knows the same.
func TestTheOptimiserIsToldCurves(t *testing.T) {
	r := judgedRig(t, 5)
	r.asks(2, 4)
	r.report(2, 1, 5, map[string]float64{"loss": 60})
	r.report(2, 1, 2, map[string]float64{"loss": 0}) // late
	told := func() string {
		p := r.e.suggestions.newAsk(1).Problem
		if len(p.Curves) != 2 || p.Curves[0].Trial != 1 || p.Last != 20 {
			t.Fatalf("told %+v up to step %d", p.Curves, p.Last)
		}
		if want := []optimizer.Look{{Step: 4, Cost: 46}, {Step: 5, Cost: 46}}; !slices.Equal(p.Curves[1].Looks, want) {
			t.Errorf("the looks at a trial that runs are %v, want %v", p.Curves[1].Looks, want)
		}
		return fmt.Sprint(p.Curves)
	}
	before := told()
	ended, _ := r.e.Trial(1)
	if n := len(ended.Looks); n < 10 || ended.Looks[0] != (optimizer.Look{Step: 1, Cost: 24}) || ended.Looks[n-1].Cost > 7 {
		t.Errorf("the record of a completed trial has %v", ended.Looks)
	}
	ask := r.e.suggestions.newAsk(1)
	if got := ask.record(false); got.Last != 20 || !maps.Equal(got.Looks, map[int]int{2: 2}) {
		t.Errorf("the request's record has %d and %v", got.Last, got.Looks)
	}
	r.restart()
	if after := told(); after != before {
		t.Errorf("the next leader tells %v, and this one told %v", after, before)
	}
	if p := judgedRig(t, 0.5).e.suggestions.newAsk(1).Problem; p.Curves != nil || p.Last != 0 {
		t.Errorf("told %v, which are on another scale", p.Curves)
	}
}

// If results are on another scale than reports, the optimiser is not told a report's value.
func TestJudgedTrialsOnAnotherScale(t *testing.T) {
	r := judgedRig(t, 0.5)
	r.step(Judged{At: r.now, Judge: r.asks(2, 4), Answer: judge.Answer{Stop: true, Reason: "no hope", Cost: 40}})
	if got, _ := r.e.Trial(2); got.Stopped == nil || got.Stopped.Likely != nil {
		t.Errorf("stopped by %+v", got.Stopped)
	}
}

// What comes too late changes nothing, and what fails lets the trial go on.
func TestLateAndFailedJudgements(t *testing.T) {
	stop := judge.Answer{Stop: true, Reason: "no hope", Cost: 40}
	r := judgedRig(t, 5)
	asked := r.asks(2, 4)
	res := r.result("w", 2, 1, messaging.OutcomeCompleted)
	res.Values = study.Values{7}
	r.step(Finished{At: r.now, Result: res})
	r.step(Judged{At: r.now, Judge: asked, Answer: stop})
	if got, _ := r.e.Trial(2); got.State != study.TrialCompleted || got.Stopped != nil {
		t.Errorf("a trial that had ended is %+v", got)
	}

	r = judgedRig(t, 5)
	asked = r.asks(2, 4)
	out := r.step(Judged{At: r.now, Judge: asked, Err: errors.New("singular")})
	if len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "trial 2 goes on, because it could not be judged: singular") {
		t.Errorf("warnings: %q", out.Warnings)
	}
	again := r.asks(2, 9)
	r.step(Judged{At: r.now, Judge: asked, Answer: stop})
	if got, _ := r.e.Trial(2); got.Stopped != nil {
		t.Error("an answer counts twice")
	}

	// The attempt was lost, and another one runs.
	r.step(Lost{At: r.now, Attempt: again.Attempt, Reason: "gone"})
	if got, _ := r.e.Trial(2); len(got.Attempts) != 2 {
		t.Fatalf("the trial has %d attempts", len(got.Attempts))
	}
	r.step(Judged{At: r.now, Judge: again, Answer: stop})
	if got, _ := r.e.Trial(2); got.Stopped != nil {
		t.Errorf("an attempt that was not judged is stopped: %+v", got.Stopped)
	}
}

// A study that has ended asks nothing, and a new leader asks at the next report.
func TestJudgementsEndWithTheStudyAndTheLeader(t *testing.T) {
	r := judgedRig(t, 5)
	r.asks(2, 4)
	r.report(3, 1, 4, map[string]float64{"loss": 30})
	r.restart()
	if r.out.Judge != nil {
		t.Error("a new leader asks before it knows a report")
	}
	r.after(0)
	asked := r.asks(2, 6)
	r.report(3, 1, 6, map[string]float64{"loss": 30})
	r.step(Stop{At: r.now, Reason: "enough"})
	if out := r.step(Judged{At: r.now, Judge: asked, Answer: judge.Answer{Stop: true}}); out.Judge != nil || len(out.Trials) > 0 {
		t.Errorf("after the end: %+v", out)
	}
}
