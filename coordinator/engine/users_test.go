package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// TestRemarks sets, changes and removes the labels, the note and the attributes of a trial, also after its
// end, and reads them back from the ledger.
func TestRemarks(t *testing.T) {
	r := newRig(t, newSpec(0, 5, 1), Settings{})
	given := Remarks{Labels: map[string]string{"team": "vision", "try": "1"}, Note: "by hand"}
	out := r.step(Add{At: r.now, Point: study.Point{"x": 0.5}, Values: study.Values{1}, Remarks: given})
	if got := out.Answer.Trial; out.Answer.Err != nil || got.Note != given.Note || !cmp.Equal(got.Labels, given.Labels) {
		t.Fatalf("added: %+v", out.Answer)
	}
	note := "looks odd"
	for range 2 {
		out = r.step(Annotate{At: r.now, Trial: 1, Labels: map[string]string{"try": "2", "bad": ""}, Remove: []string{"team", "none"},
			Note: &note})
		if out.Answer.Err != nil || len(out.Trials) != 1 {
			t.Fatalf("annotated: %+v", out)
		}
	}
	r.step(Annotate{At: r.now, Trial: 1, Remove: []string{"bad"}})
	r.restart()
	got, _ := r.e.Trial(1)
	if diff := cmp.Diff(map[string]string{"try": "2"}, got.Labels); diff != "" || got.Note != note {
		t.Errorf("note %q, labels (-want +got):\n%s", got.Note, diff)
	}
	r.step(Annotate{At: r.now, Trial: 1, Remove: []string{"try"}, Note: new(string)})
	if got, _ := r.e.Trial(1); got.Labels != nil || got.Note != "" {
		t.Errorf("all is removed, and the trial has %v and %q", got.Labels, got.Note)
	}
	for _, set := range []map[string]any{{"a": []any{1.0, "b"}, "c": nil, "d": true}, {"d": nil, "e": 2.5}} {
		r.step(Annotate{At: r.now, Trial: 1, Attributes: set})
		r.restart()
	}
	got, _ = r.e.Trial(1)
	if diff := cmp.Diff(map[string]any{"a": []any{1.0, "b"}, "e": 2.5}, got.Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	out = r.step(Annotate{At: r.now, Trial: 1, Attributes: map[string]any{"f": strings.Repeat("x", study.MaxAttributes)}})
	if !errors.Is(out.Answer.Err, ErrInvalid) {
		t.Errorf("attributes that are too large: %v", out.Answer.Err)
	}
	many := map[string]string{}
	for i := range study.MaxLabels + 1 {
		many[fmt.Sprint("k", i)] = "v"
	}
	if out = r.step(Annotate{At: r.now, Trial: 1, Labels: many}); !errors.Is(out.Answer.Err, ErrInvalid) {
		t.Errorf("too many labels: %v", out.Answer.Err)
	}
	if out = r.step(Annotate{At: r.now, Trial: 2}); !errors.Is(out.Answer.Err, ErrNoTrial) {
		t.Errorf("no such trial: %v", out.Answer.Err)
	}
}

// stoppedRig returns a study of four trials that stops those above 1. Trial 1 has left a checkpoint and was stopped,
// trial 2 has completed.
func stoppedRig(t *testing.T) *rig {
	t.Helper()
	spec, set := newSpec(0, 4, 1), Settings{}
	limited(&spec, &set, 1)
	r := newRig(t, spec, set)
	r.step(Capacity{At: r.now, Slots: 1, Free: 1})
	r.suggest(0.25)
	r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(1, 1), Worker: "w", At: r.now}})
	r.report(1, 1, 3, map[string]float64{"loss": 2})
	res := r.result("w", 1, 1, messaging.OutcomePruned)
	res.Checkpoint = "epoch 3"
	r.step(Finished{At: r.now, Result: res})
	if r.ask == nil {
		r.after(time.Second)
	}
	r.suggest(0.5)
	r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(2, 1), Worker: "w", At: r.now}})
	r.complete("w", 2, 1, 0.5)
	return r
}

// TestContinue has a trial run to its end that was stopped early, also under the next leader: from its checkpoint,
// with its seed, before the next suggestion, and whatever it reports.
func TestContinue(t *testing.T) {
	r := stoppedRig(t)
	recommended := record.Recommendation{Trial: 1, Mean: 0.125, SD: 0.5, Position: r.e.Status().Position}
	if r.step(Recommended{At: r.now, Recommendation: recommended}); r.e.Status().Recommended.Trial != 0 {
		t.Error("a trial that was stopped early is recommended")
	}
	ev := Enqueue{At: r.now, Continues: 1, RequestID: "again"}
	r.restart()
	r.after(0)
	out := r.step(ev)
	got := out.Answer
	if got.Err != nil || got.Trial.Number != 3 || got.Trial.Predecessor != 1 || got.Trial.Checkpoint != "epoch 3" ||
		got.Trial.Source != optimizer.SourceRequested || got.Trial.Point["x"] != 0.25 ||
		got.Trial.Reasons.Note != "runs trial 1 to its end, which was stopped at step 3" {
		t.Fatalf("continued: %+v", got)
	}
	if again := r.step(ev).Answer; again.Err != nil || again.Trial.Number != 3 {
		t.Errorf("the same request again: %+v", again)
	}
	if other := r.step(Enqueue{At: r.now, Point: study.Point{"x": 0.25}, RequestID: "again"}).Answer; !errors.Is(other.Err, ErrRefused) {
		t.Errorf("another request of the same id: %+v", other)
	}
	if len(out.Publish) != 1 {
		t.Fatalf("with a free slot: %+v", out)
	}
	if a := out.Publish[0]; a.Trial != 3 || a.Checkpoint != "epoch 3" || a.Configuration != 1 || a.Seed != TrialSeed(7, 1) {
		t.Errorf("published: %+v", a)
	}
	r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(3, 1), Worker: "w", At: r.now}})
	for i, step := range []int64{4, 5} {
		if out := r.report(3, 1, step, map[string]float64{"loss": 9}); len(out.Cancels) > 0 {
			t.Errorf("it is stopped again: %+v", out.Cancels)
		}
		if i == 0 {
			r.restart()
			r.after(0)
		}
	}
	r.complete("w", 3, 1, 0.125)
	if best, ok := r.e.Best(); !ok || best.Number != 3 || best.Stopped != nil {
		t.Errorf("the best trial is %+v", best)
	}
}

// TestContinueAfterTheEnd has a trial run to its end once the budget is used up: the study goes on for it, also under
// the next leader, makes no other trial, and ends again. One that has reached its goal does not go on.
func TestContinueAfterTheEnd(t *testing.T) {
	r := stoppedRig(t)
	spec := r.e.Spec()
	spec.Definition.Spec.Budget.MaxTrials = 2
	r.step(Update{At: r.now, Study: spec})
	if s := r.e.Status(); s.State != study.Completed {
		t.Fatalf("with all of the budget used up: %+v", s)
	}
	r.after(time.Hour)
	out := r.step(Enqueue{At: r.now, Continues: 1, RequestID: "again"})
	s := r.e.Status()
	if out.Answer.Err != nil || s.State != study.Running || s.Reason != "" || len(out.Publish) != 1 || out.Publish[0].Trial != 3 {
		t.Fatalf("continued: %+v, the study is %+v", out, s)
	}
	r.restart()
	r.after(time.Second)
	if r.ask != nil || len(r.e.trials.all) != 3 {
		t.Errorf("other trials are wanted: %v, %d trials", r.ask, len(r.e.trials.all))
	}
	other := r.step(Enqueue{At: r.now, Point: study.Point{"x": 0.75}}).Answer
	if other.Err == nil || !strings.Contains(other.Err.Error(), "raise budget.maxTrials") {
		t.Errorf("another point meanwhile: %v", other.Err)
	}
	r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(3, 1), Worker: "w", At: r.now}})
	r.complete("w", 3, 1, 0.125)
	s = r.e.Status()
	if s.State != study.Completed || s.Best != 3 || s.Counts.Completed != 2 || s.Idle != time.Hour {
		t.Errorf("when it has ended: %+v", s)
	}
	if again := r.step(Enqueue{At: r.now, Continues: 1, RequestID: "again"}).Answer; again.Err != nil || again.Trial.Number != 3 {
		t.Errorf("the same request again: %+v", again)
	}

	r = stoppedRig(t)
	spec, goal := r.e.Spec(), 0.5
	spec.Definition.Spec.Objective.Goal = &goal
	r.step(Update{At: r.now, Study: spec})
	want := "the study has ended, and would end again at once: trial 2 reached the goal"
	if got := r.step(Enqueue{At: r.now, Continues: 1}).Answer; got.Err == nil || !strings.Contains(got.Err.Error(), want) {
		t.Errorf("after the goal is reached: %v, want %q", got.Err, want)
	}
	if s := r.e.Status(); s.State != study.Completed || len(r.e.trials.all) != 2 {
		t.Errorf("after the refusal: %+v", s)
	}
}

// TestContinueIsRefused checks what cannot be continued, and that a trial can be continued again if the trial that did
// so was cancelled.
func TestContinueIsRefused(t *testing.T) {
	r := stoppedRig(t)
	refused := func(trial int, want string) {
		t.Helper()
		if got := r.step(Enqueue{At: r.now, Continues: trial}).Answer; got.Err == nil || !strings.Contains(got.Err.Error(), want) {
			t.Errorf("to continue trial %d: %v, want %q", trial, got.Err, want)
		}
	}
	refused(2, "trial 2 is COMPLETED; only a trial that was stopped early (PRUNED) can be continued")
	refused(9, "there is no trial 9; the last one is 2")
	refused(-1, "there is no trial -1")
	first := r.step(Enqueue{At: r.now, Continues: 1}).Answer
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	refused(1, fmt.Sprintf("trial %d continues trial 1 already", first.Trial.Number))
	r.step(CancelTrial{At: r.now, Trial: first.Trial.Number})
	r.restart()
	r.after(0)
	second := r.step(Enqueue{At: r.now, Continues: 1}).Answer
	if second.Err != nil || second.Trial.Predecessor != 1 {
		t.Fatalf("after it was cancelled: %+v", second)
	}
	r.step(CancelTrial{At: r.now, Trial: second.Trial.Number})
	r.step(Stop{At: r.now, Reason: "enough"})
	refused(1, "the study has ended: STOPPED. It would begin other trials too if it went on: resume it first")

	spec, set := newSpec(0, 4, 1), Settings{}
	limited(&spec, &set, 1)
	lo, hi := 1.0, 9.0
	spec.Definition.Spec.Parameters = append(spec.Definition.Spec.Parameters, study.Parameter{
		Name: "epochs", Type: study.Fidelity, Min: &lo, Max: &hi, Reduction: new(3),
	})
	r = newRig(t, spec, set)
	r.step(Capacity{At: r.now, Slots: 1, Free: 1})
	r.suggest(0.25)
	refused(1, "continued by promotion")
}
