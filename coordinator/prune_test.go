package coordinator

import (
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// TestANewLeaderStopsWhatTheOldOneDecidedTo checks that a decision outlives its leader:
// the worker is told again, and the trial ends with what it had reached.
func TestANewLeaderStopsWhatTheOldOneDecidedTo(t *testing.T) {
	r := newRig(t, membus.Options{})
	first := r.leader()
	id := r.create(first, "pruned", 1, 1, func(s *study.Spec) {
		s.EarlyStopping = &study.EarlyStopping{Name: "threshold", Metric: "loss", Settings: map[string]any{"upper": 0.5}}
	}).ID
	told := make(chan struct{})
	h := r.hand("w", 1, func(*messaging.Assignment) *messaging.Result {
		select {
		case <-told:
			return &messaging.Result{Outcome: messaging.OutcomePruned, Values: []float64{0.75}}
		case <-r.t.Context().Done():
			return nil
		}
	})
	open := r.trial(id, 1, func(t *record.Trial) bool { return t.State == study.TrialRunning })
	attempt := named(id, &open, 1)
	for step, loss := range []float64{0.4, 0.6, 0.7} {
		err := h.bus.PublishMeasurement(r.ctx(), &messaging.Measurement{
			AttemptID: attempt, Worker: "w", Step: int64(step + 1), Metrics: map[string]float64{"loss": loss}, At: time.Now(),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	h.heard(messaging.ControlPrune, attempt)
	decided := r.trial(id, 1, func(t *record.Trial) bool { return t.Stopped != nil })
	if s := decided.Stopped; s.Step != 2 || s.Attempt != 1 || s.Values.First() != 0.6 || s.Reason == "" ||
		decided.State != study.TrialRunning {
		t.Errorf("it is %s, stopped by %+v; want RUNNING, by step 2", decided.State, s)
	}
	first.stop()
	h.mu.Lock()
	h.controls = nil
	h.mu.Unlock()
	r.leader()
	if c := h.heard(messaging.ControlPrune, attempt); c.Reason != decided.Stopped.Reason {
		t.Errorf("the new leader's reason is %q, want %q", c.Reason, decided.Stopped.Reason)
	}
	close(told)
	r.ends(id)
	ended := r.trial(id, 1, func(t *record.Trial) bool { return t.State.Terminal() })
	if ended.State != study.TrialPruned || ended.Values.First() != 0.75 || ended.Stopped.Step != 2 || len(ended.Attempts) != 1 {
		t.Errorf("ended as %s with %v after %d attempts, stopped by %+v", ended.State, ended.Values, len(ended.Attempts), ended.Stopped)
	}
}

// TestAModelStopsATrial checks that a model is asked outside of the leader's loop, and that its decision
// reaches the worker and the ledger.
func TestAModelStopsATrial(t *testing.T) {
	r := newRig(t, membus.Options{})
	id := r.create(r.leader(), "judged", 2, 2, func(s *study.Spec) {
		s.EarlyStopping = &study.EarlyStopping{Name: pruner.Model, Metric: "loss", Settings: map[string]any{"maxSteps": 30, "protect": 0}}
	}).ID
	stop := make(chan struct{})
	h := r.hand("w", 2, func(a *messaging.Assignment) *messaging.Result {
		select {
		case <-stop:
			return &messaging.Result{Outcome: messaging.OutcomeCompleted, Values: []float64{float64(a.Trial)}}
		case <-r.t.Context().Done():
			return nil
		}
	})
	for number := 1; number <= 2; number++ { // the second one is far worse
		open := r.trial(id, number, func(t *record.Trial) bool { return t.State == study.TrialRunning })
		for step := range 12 {
			err := h.bus.PublishMeasurement(r.ctx(), &messaging.Measurement{
				AttemptID: named(id, &open, 1), Worker: "w", Step: int64(step + 1), At: time.Now(),
				Metrics: map[string]float64{"loss": float64(number*number*number) + 1/float64(step+1)},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	decided := r.trial(id, 2, func(t *record.Trial) bool { return t.Stopped != nil })
	if !strings.Contains(decided.Stopped.Reason, "of 30 it is expected to end at ") || decided.Stopped.Likely != nil {
		t.Errorf("stopped by %+v", decided.Stopped)
	}
	h.heard(messaging.ControlPrune, named(id, &decided, 1))
	close(stop)
	r.ends(id)
}
