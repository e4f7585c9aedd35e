package coordinator

import (
	"testing"
	"time"

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
