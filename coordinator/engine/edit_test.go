package engine

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// ranged is a study's specification with another range of its parameter.
func ranged(e *Engine, low, high float64) record.Study {
	var spec record.Study
	decode(encode(e.Spec()), &spec)
	q := &spec.Definition.Spec.Parameters[0]
	q.Min, q.Max = &low, &high
	return spec
}

// finish has a worker complete a trial's only attempt.
func finish(r *rig, number int, value float64) Output {
	t, _ := r.e.Trial(number)
	id := messaging.AttemptID{Study: studyID, Trial: number, Attempt: 1, Nonce: t.Attempts[0].Nonce}
	return r.step(Finished{At: r.now, Result: &messaging.Result{
		AttemptID: id, Worker: "w", Outcome: messaging.OutcomeCompleted, Values: study.Values{value}, Started: r.now, Ended: r.now,
	}})
}

// numbers are the trials that the optimiser is told as ended and as pending.
func numbers(e *Engine) (ended, pending []int) {
	p := e.Problem()
	for _, o := range p.Observations {
		ended = append(ended, o.Trial)
	}
	for _, o := range p.Pending {
		pending = append(pending, o.Trial)
	}
	return ended, pending
}

// TestEditSpace narrows the range of a running study and widens it again: who is told,
// who counts, and who is best.
func TestEditSpace(t *testing.T) {
	r := newRig(t, newSpec(0, 20, 4), Settings{})
	r.step(Capacity{At: r.now, Slots: 4, Free: 4})
	for _, x := range []float64{0.1, 0.5, 0.9, 0.6} {
		for r.ask == nil {
			r.after(time.Second)
		}
		r.suggest(x)
	}
	finish(r, 1, 0.25) // the best, at 0.1
	finish(r, 2, 0.75)
	r.step(Recommended{At: r.now, Recommendation: record.Recommendation{Trial: 1, Mean: 0.25, SD: 1, Position: r.e.Status().Position}})
	early := r.ask // made for the first space
	if early == nil || r.e.Model().State == nil {
		t.Fatal("no request is under way, or the optimiser has no state")
	}

	out := r.step(Update{At: r.now, Study: ranged(r.e, 0.2, 0.8)})
	ended, pending := numbers(r.e)
	if !slices.Equal(ended, []int{2}) || !slices.Equal(pending, []int{4}) {
		t.Errorf("in [0.2, 0.8] the optimiser is told %v as ended and %v as pending, want 2 and 4", ended, pending)
	}
	s := r.e.Status()
	if s.Best != 2 || s.Recommended.Trial != 0 || s.Counts.Completed != 2 || s.Counts.Open() < 2 {
		t.Errorf("status %+v: want trial 2 as the best, none recommended, and all trials counted", s)
	}
	if out.Study == nil || out.Study.SpaceVersion() != 2 || out.Model == nil || out.Model.State != nil {
		t.Errorf("the edit stores the study %+v and the model %+v, want version 2 and no state", out.Study, out.Model)
	}
	for _, c := range out.Cancels {
		t.Errorf("the edit stops %v", c.Attempt)
	}

	if out = r.suggest(0.3); len(out.Trials) > 0 || out.Ask == nil || out.Ask.Problem.Space == early.Problem.Space || out.Ask.State != nil {
		t.Errorf("an answer made for the earlier space gives %v", describe(out))
	}
	if out = finish(r, 3, 0.125); out.Status.Best != 2 || out.Status.Counts.Completed != 3 {
		t.Errorf("a trial outside ends: %+v, want it counted and trial 2 as the best", out.Status)
	}
	r.step(Recommended{At: r.now, Recommendation: record.Recommendation{Trial: 3, Mean: 0.125, SD: 1, Position: r.e.Status().Position}})
	if got := r.e.Status().Recommended.Trial; got != 0 {
		t.Errorf("trial %d is recommended, which is outside", got)
	}
	restarted := r.restart()
	if restarted.Status != nil || len(restarted.Trials) > 0 {
		t.Errorf("a restart after the edit mends %v", describe(restarted))
	}

	r.step(Update{At: r.now, Study: ranged(r.e, 0, 2)})
	if ended, _ = numbers(r.e); !slices.Equal(ended, []int{1, 2, 3}) {
		t.Errorf("in [0, 2] the optimiser is told %v, want all three, in the order in which they ended", ended)
	}
	if spec, s := r.e.Spec(), r.e.Status(); spec.SpaceVersion() != 3 || s.Best != 3 {
		t.Errorf("version %d and best trial %d, want 3 and 3", spec.SpaceVersion(), s.Best)
	}

	spec := ranged(r.e, 0, 2)
	spec.Definition.Spec.Budget.MaxTrials = 30
	before := r.e.spec.space
	r.step(Update{At: r.now, Study: spec})
	if now := r.e.Spec(); now.SpaceVersion() != 3 || r.e.spec.space != before {
		t.Errorf("a larger budget makes version %d of the space", now.SpaceVersion())
	}
}

// TestEditIsCutOff loads what a leader leaves that dies after the first transactions of an
// edit: the study's record and some trials, but no status.
func TestEditIsCutOff(t *testing.T) {
	for name, edit := range map[string]func(e *Engine) record.Study{
		"a larger budget": func(e *Engine) record.Study {
			spec := ranged(e, 0, 1)
			spec.Definition.Spec.Budget.MaxTrials = 4
			return spec
		},
		"another space": func(e *Engine) record.Study {
			spec := ranged(e, 0.25, 2)
			spec.Definition.Spec.Budget.MaxTrials = 4
			return spec
		},
	} {
		for _, trials := range []bool{false, true} {
			r := newRig(t, newSpec(0, 2, 1), Settings{})
			r.step(Capacity{At: r.now, Slots: 1, Free: 1})
			for n, x := range []float64{0.5, 0.125} {
				r.suggest(x)
				finish(r, n+1, x)
			}
			if s := r.e.Status(); s.State != study.Completed {
				t.Fatalf("%s: the study is %s", name, s.State)
			}
			r.now = r.now.Add(time.Minute)
			whole := r.e.Step(Update{At: r.now, Study: edit(r.e)})
			part := Output{Study: whole.Study}
			if trials { // the next step is in the same batch
				suggestions := []optimizer.Suggestion{{Point: r.point(1), Source: optimizer.SourceModel}}
				next := r.e.Step(Suggested{At: r.now, Ask: whole.Ask, Suggestions: suggestions})
				part.Trials = append(part.Trials, next.Trials...)
			}
			r.ledger.commit(&part)
			want := r.e.Status()
			r.now = r.now.Add(time.Minute)
			e, out, err := r.ledger.load(&counterIDs{prefix: "b"}, r.set, r.now)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := e.Status()
			if got.State != study.Running || got.Space != want.Space || got.Best != want.Best || got.Idle != 2*time.Minute || out.Status == nil {
				t.Errorf("%s, with trials %v: loaded as %+v, want it running with space %d, best %d and two idle minutes", name, trials, got,
					want.Space, want.Best)
			}
			if edited, _ := numbers(e); (len(edited) == 1) != (want.Space == 2) {
				t.Errorf("%s: the optimiser is told %v", name, edited)
			}
			if want.Space == 2 && e.Model().State != nil {
				t.Errorf("%s: the optimiser keeps the state of the earlier space", name)
			}
		}
	}
}

// TestEditBesideAFidelityIsCutOff: the leader that finishes an edit ranks each trial once.
func TestEditBesideAFidelityIsCutOff(t *testing.T) {
	r := newRig(t, withFidelity(9, 3, 20, 1), Settings{})
	r.step(Capacity{At: r.now, Slots: 1, Free: 1})
	for n, x := range []float64{0.5, 0.75, 0.125} {
		r.suggest(x)
		finish(r, n+1, x)
	}
	whole := r.e.Step(Update{At: r.now, Study: ranged(r.e, 0.25, 2)})
	r.ledger.commit(&Output{Study: whole.Study})
	e, _, err := r.ledger.load(&counterIDs{prefix: "b"}, r.set, r.now)
	if err != nil {
		t.Fatal(err)
	}
	var told []int
	for _, o := range e.Problem().Observations {
		told = append(told, o.Trial)
	}
	if !slices.Equal(told, []int{1, 2}) {
		t.Errorf("the optimiser is told of trials %v, want 1 and 2, each once", told)
	}
	if r := e.ladder.rungs[0]; len(r.ranked) != 2 || r.completed != 2 || len(r.waiting) != 2 {
		t.Errorf("the lowest level has %d trials, %d of them completed and %d waiting, want two of each", len(r.ranked), r.completed,
			len(r.waiting))
	}
}

// TestStoppedStaysStopped: a load resumes only what an update was to resume.
func TestStoppedStaysStopped(t *testing.T) {
	r := newRig(t, newSpec(0, 2, 1), Settings{})
	r.step(Stop{At: r.now, Reason: "enough"})
	r.now = r.now.Add(time.Second)
	r.step(Update{At: r.now, Study: ranged(r.e, 0, 3)})
	if got := r.e.Status().State; got != study.Running {
		t.Fatalf("an update of a stopped study leaves it %s", got)
	}
	r.now = r.now.Add(time.Second)
	r.step(Stop{At: r.now, Reason: "enough"})
	if r.restart(); r.e.Status().State != study.Stopped {
		t.Errorf("a restart makes the stopped study %s", r.e.Status().State)
	}
}

// TestGoalOutside: a value outside of the space is not the goal of the study.
func TestGoalOutside(t *testing.T) {
	spec := newSpec(0, 9, 1)
	goal := 0.5
	spec.Definition.Spec.Objective.Goal = &goal
	r := newRig(t, spec, Settings{})
	r.step(Capacity{At: r.now, Slots: 1, Free: 1})
	r.suggest(0.75)
	r.step(Update{At: r.now, Study: ranged(r.e, 0, 0.5)})
	finish(r, 1, 0.25)
	if s := r.e.Status(); s.State != study.Running || s.Best != 0 {
		t.Errorf("status %+v, want it running without a best trial", s)
	}
	r.step(Update{At: r.now, Study: ranged(r.e, 0, 1)})
	if s := r.e.Status(); s.State != study.Completed || s.Best != 1 {
		t.Errorf("status %+v, want the goal reached by trial 1", s)
	}
}

// TestUneditedPointsMustFit: records of a space that was never edited are still refused if
// a trial is no point of it.
func TestUneditedPointsMustFit(t *testing.T) {
	spec := newSpec(0, 9, 1)
	trial := record.Trial{Number: 1, State: study.TrialCompleted, Point: study.Point{"x": 2.0}, Created: 1, Ended: 2, Values: study.Values{1}}
	status := record.Status{State: study.Running, Trials: 1, Position: 2}
	if _, _, err := Load(spec, status, record.Model{}, []record.Trial{trial}, &counterIDs{}, Settings{}, epoch); err == nil {
		t.Error("a point outside of version 1 is loaded")
	}
	spec.Space, status.Space = 2, 2
	e, _, err := Load(spec, status, record.Model{}, []record.Trial{trial}, &counterIDs{}, Settings{}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := e.Trial(1)
	if diff := cmp.Diff(trial.Point, got.Point); diff != "" || math.IsNaN(got.Values.First()) {
		t.Errorf("the point of a trial outside (-stored +loaded):\n%s", diff)
	}
}

// TestAttemptsByName: a client that lost a trial and got it again, perhaps in another
// process, cannot end the second attempt by the first one's name.
func TestAttemptsByName(t *testing.T) {
	spec := newSpec(0, 5, 4)
	spec.Definition.Spec.Trial.Command = nil
	spec.Definition.Spec.Trial.Retries.Lost = ptrTo(3)
	r := newRig(t, spec, Settings{Fallback: true})
	seek := func() {
		r.step(Seek{At: r.now, Client: "c", Want: 1})
		for r.ask != nil {
			r.suggest(0.5)
		}
	}
	seek()
	first, err := r.e.Attempt("c", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.step(Lost{At: r.now, Attempt: first, Reason: "silent"})
	seek()
	if second, err := r.e.Attempt("c", 1, 0); err != nil || second.Attempt != 2 {
		t.Fatalf("the client holds attempt %v: %v", second, err)
	}
	for _, outcome := range []messaging.Outcome{messaging.OutcomeFailed, messaging.OutcomeHandedBack} {
		out := r.step(Told{At: r.now, Client: "c", Trial: 1, Attempt: 1, Outcome: outcome, Failure: &messaging.Failure{Reason: "late"}})
		if !errors.Is(out.Answer.Err, ErrRefused) || len(out.Trials) > 0 {
			t.Errorf("attempt 1 is over and told as %s: %v, with changes %v", outcome, out.Answer.Err, out.Trials)
		}
	}
	if out := r.step(Told{At: r.now, Client: "c", Trial: 1, Attempt: 3, Outcome: messaging.OutcomeFailed}); !errors.Is(out.Answer.Err,
		ErrRefused) {
		t.Errorf("attempt 3 was never opened, and is told: %v", out.Answer.Err)
	}
	if do, err := r.e.Instruct("c", 1, 1); do.Do != Abandon || err != nil {
		t.Errorf("the first attempt is to do %v: %v", do, err)
	}
	if do, err := r.e.Instruct("c", 1, 2); do.Do != Continue || err != nil {
		t.Errorf("the second attempt is to do %v: %v", do, err)
	}
	out := r.step(Told{At: r.now, Client: "c", Trial: 1, Attempt: 2, Outcome: messaging.OutcomeFailed,
		Failure: &messaging.Failure{Reason: "bad"}})
	if got := out.Answer.Trial; out.Answer.Err != nil || got.Attempts[1].State != study.AttemptFailed ||
		got.Attempts[0].State != study.AttemptLost {
		t.Errorf("attempt 2 is told as failed: %+v", out.Answer)
	}
}

// TestCancelReasonIsKept: why a user cancelled a trial is in its record.
func TestCancelReasonIsKept(t *testing.T) {
	r := newRig(t, newSpec(0, 5, 4), Settings{})
	r.step(Capacity{At: r.now, Slots: 1, Free: 1})
	r.suggest(0.5)
	out := r.step(CancelTrial{At: r.now, Trial: 1, Reason: "too hot"})
	if got := out.Answer.Trial.Cancelled; got != "too hot" || out.Trials[0].Cancelled != got {
		t.Errorf("cancelled because of %q, want %q", got, "too hot")
	}
}

func ptrTo(n int) *int { return &n }

// TestAttributesOfAStudy notes something about a study that has ended: it is stored, also after a
// restart, and the study does not resume, as it would after another edit.
func TestAttributesOfAStudy(t *testing.T) {
	r := newRig(t, newSpec(0, 5, 1), Settings{})
	r.step(Stop{At: r.now, Reason: "enough"})
	ended := r.e.Status()
	spec := r.e.Spec()
	spec.Definition.Spec.Attributes = map[string]any{"data": "digits", "sizes": []any{64.0, 32.0}}
	if out := r.step(Update{At: r.now, Study: spec}); out.Study == nil || out.Status != nil {
		t.Errorf("the attributes store the study %v and the status %v, want only the study", out.Study, out.Status)
	}
	r.restart()
	got, err := json.Marshal(r.e.Spec().Definition.Spec.Attributes)
	if want := `{"data":"digits","sizes":[64,32]}`; err != nil || string(got) != want {
		t.Errorf("attributes %s, %v; want %s", got, err, want)
	}
	if now := r.e.Status(); now.State != ended.State || now.Reason != ended.Reason || !now.Ended.Equal(ended.Ended) {
		t.Errorf("the study is %s (%s), want %s (%s)", now.State, now.Reason, ended.State, ended.Reason)
	}
}
