package coordinator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestStudyRunsToItsEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	r.hand("w1", 2, nil)
	r.hand("w2", 2, nil)
	s := r.create(c, "whole", 30, 4)
	if got := r.ends(s.ID); got.Status.State != study.Completed {
		t.Errorf("the study ended %s (%s)", got.Status.State, got.Status.Reason)
	}
	r.verify(s.ID, 30, 30)
}

func TestCommandsAndTheirErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	ctx := r.ctx()
	w := r.hand("w", 2, never)
	s := r.create(c, "taken", 10, 2)
	first := r.trial(s.ID, 1, func(tr *trialRecord) bool { return tr.State == study.TrialRunning })

	if _, err := c.Create(ctx, newStudy("taken", 1, 1)); !errors.Is(err, ledger.ErrNameTaken) {
		t.Errorf("a second study of the name: %v", err)
	}
	if err := c.Delete(ctx, "taken", false); !errors.Is(err, ErrRunning) {
		t.Errorf("delete a running study: %v", err)
	}
	for what, err := range map[string]error{
		"stop":   c.Stop(ctx, "none", ""),
		"update": c.Update(ctx, "none", newStudy("none", 1, 1), 0),
		"delete": c.Delete(ctx, "none", true),
	} {
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("%s an unknown study: %v", what, err)
		}
	}
	other := newStudy("taken", 20, 2, func(s *study.Spec) { s.Objective.Metric = "accuracy" })
	if err := c.Update(ctx, "taken", other, 0); !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), "spec.objective.metric") {
		t.Errorf("update by another metric: %v", err)
	}
	if err := c.Update(ctx, "taken", newStudy("renamed", 20, 2), 0); !errors.Is(err, ErrIncompatible) {
		t.Errorf("update by another name: %v", err)
	}
	if err := c.Stop(ctx, "taken", "enough"); err != nil {
		t.Fatal(err)
	}
	w.heard(messaging.ControlCancel, named(s.ID, &first, 1))
	if got := r.ends(s.ID); got.Status.State != study.Stopped || got.Status.Reason != "enough" {
		t.Errorf("the study is %s (%s)", got.Status.State, got.Status.Reason)
	}
	if err := c.Stop(ctx, "taken", "again"); err != nil {
		t.Errorf("stop a stopped study: %v", err)
	}
	if p, err := c.Progress(ctx, s.ID); err != nil || p.Status.State != study.Stopped {
		t.Errorf("progress: %+v, %v", p, err)
	}
	if err := c.Delete(ctx, "taken", false); err != nil {
		t.Errorf("delete an ended study: %v", err)
	}
	if _, err := r.ledger.Study(ctx, "taken"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a deleted study: %v", err)
	}
}

// A study whose file is short enough but whose record is too large is refused, with the
// reason, and ends no term.
func TestStudyThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	before := c.term.Load()
	large := func(s *study.Spec) { s.Trial.Env = map[string]string{"TEXT": strings.Repeat("<", ledger.MaxBytes/5)} }
	s := r.create(c, "small", 2, 1)
	_, errCreate := c.Create(r.ctx(), newStudy("large", 2, 1, large))
	for _, err := range []error{errCreate, c.Update(r.ctx(), s.ID, newStudy("small", 2, 1, large), 0)} {
		if _, ok := errors.AsType[*study.Problems](err); !ok || !strings.Contains(err.Error(), "1048576 bytes as JSON") {
			t.Errorf("a study that is too large: %v", err)
		}
	}
	r.hand("w", 1, nil)
	r.ends(s.ID)
	if c.term.Load() != before {
		t.Error("the term ended")
	}
}

func TestLargerBudgetGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	r.hand("w", 2, nil)
	s := r.create(c, "grows", 4, 2)
	r.ends(s.ID)
	if err := c.Update(r.ctx(), "grows", newStudy("grows", 9, 3), 0); err != nil {
		t.Fatal(err)
	}
	r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Counts.Ended() == 9 && s.Status.State == study.Completed })
	r.verify(s.ID, 9, 9)
}

// A study that is deleted and created again under the same name gets a new id. Claims
// and results of the deleted study must not affect it.
func TestRecreatedNameMeetsNoOldClaims(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	old := r.hand("old", 2, never)
	first := r.create(c, "again", 5, 2)
	trial := r.trial(first.ID, 1, func(tr *trialRecord) bool { return tr.State == study.TrialRunning })
	if err := c.Delete(r.ctx(), "again", true); err != nil {
		t.Fatal(err)
	}
	id := named(first.ID, &trial, 1)
	old.heard(messaging.ControlCancel, id)
	old.set(func() { old.answer = completes })

	second := r.create(c, "again", 5, 2)
	value := 0.0
	late := &messaging.Result{AttemptID: id, Worker: old.name, Outcome: messaging.OutcomeCompleted, Values: []float64{value},
		Started: trial.Times.Created, Ended: trial.Times.Created}
	if err := old.bus.PublishResult(r.ctx(), late); err != nil {
		t.Fatal(err)
	}
	if got := old.heard(messaging.ControlReceipt, id); got.Disposition != "unknown" {
		t.Errorf("the deleted study's result was receipted as %q", got.Disposition)
	}
	r.ends(second.ID)
	r.verify(second.ID, 5, 5)
	if n := len(r.broker.DeadLetters()); n != 1 {
		t.Errorf("%d dead letters, want the late result", n)
	}
}

func TestNotTheLeader(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	r.leader(func(o *Options) { o.Advertise = "first:1" })
	c := r.replica()
	ctx := r.ctx()
	_, errCreate := c.Create(ctx, newStudy("s", 1, 1))
	_, errProgress := c.Progress(ctx, "s")
	for what, err := range map[string]error{
		"create": errCreate, "progress": errProgress,
		"stop":   c.Stop(ctx, "s", ""),
		"update": c.Update(ctx, "s", newStudy("s", 1, 1), 0),
		"delete": c.Delete(ctx, "s", true),
	} {
		if !errors.Is(err, ErrNotLeader) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if address, self, err := c.Leader(ctx); address != "first:1" || self || err != nil {
		t.Errorf("the leader is at %q (self: %t): %v", address, self, err)
	}
	waiting, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Leading(waiting); !errors.Is(err, context.Canceled) {
		t.Errorf("wait to lead: %v", err)
	}
}

// TestSpaceIsEdited narrows the range of a study and gives it more trials. It goes on with
// points of the new range, and counts all trials.
func TestSpaceIsEdited(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	r.hand("w", 2, nil)
	s := r.create(c, "edited", 6, 2)
	r.ends(s.ID)
	low, high := 0.25, 0.5
	narrow := newStudy("edited", 12, 2, func(s *study.Spec) { s.Parameters[0].Min, s.Parameters[0].Max = &low, &high })
	if err := c.Update(r.ctx(), "edited", narrow, 0); err != nil {
		t.Fatal(err)
	}
	r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Counts.Ended() == 12 && s.Status.State == study.Completed })
	records, err := r.ledger.LoadStudy(r.ctx(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	if records.Study.SpaceVersion() != 2 || records.Status.Space != 2 {
		t.Errorf("version %d, status %+v: want version 2", records.Study.SpaceVersion(), records.Status)
	}
	best := 0
	for _, tr := range records.Trials {
		x, _ := tr.Point["x"].(float64)
		inside := x >= low && x <= high
		if tr.Number > 6 && !inside {
			t.Errorf("trial %d is evaluated at %v", tr.Number, tr.Point)
		}
		if inside && (best == 0 || tr.Values.First() < records.Trials[best-1].Values.First()) {
			best = tr.Number
		}
	}
	if got := records.Status.Best; best == 0 || records.Trials[got-1].Values.First() != records.Trials[best-1].Values.First() {
		t.Errorf("trial %d is the best, want %d, the best of the new range", got, best)
	}
}
