package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// continued is a study with two objectives and a limit, whose trial is interrupted.
type continued struct {
	*rig
	t       *testing.T
	attempt int
}

func newContinued(t *testing.T, change func(*study.Spec)) *continued {
	spec, set := newSpec(0, 10, 1), Settings{Pruner: pruner.NewFor}
	change(&spec.Definition.Spec)
	c := &continued{newRig(t, spec, set), t, 0}
	c.step(Capacity{At: c.now, Slots: 1, Free: 1})
	c.suggest(0.25)
	c.claim()
	return c
}

func (c *continued) claim() {
	c.attempt++
	c.step(Claimed{At: c.now, Claim: &messaging.Claim{AttemptID: c.id(1, c.attempt), Worker: "w", At: c.now}})
}

func (c *continued) report(step int64, metrics map[string]float64) {
	c.step(Measured{At: c.now, Measurement: &messaging.Measurement{AttemptID: c.id(1, c.attempt), Worker: "w", Step: step, Metrics: metrics}})
}

// want checks what the next attempt is told, which it then begins.
func (c *continued) want(out Output, want *messaging.Reached) {
	c.t.Helper()
	if len(out.Publish) != 1 {
		c.t.Fatalf("%d assignments are published, want 1", len(out.Publish))
	}
	if diff := cmp.Diff(want, out.Publish[0].Reached); diff != "" {
		c.t.Errorf("attempt %d is told (-want +got):\n%s", c.attempt+1, diff)
	}
	c.claim()
}

type (
	values = map[string]messaging.Number
	steps  = map[string]int64
)

func (c *continued) lost() Output {
	return joined(c.step(Lost{At: c.now, Attempt: c.id(1, c.attempt), Reason: "silent"}), c.after(0))
}

func best(s *study.Spec) {
	s.Objective = study.Objective{}
	s.Several = []study.Objective{
		{Metric: "loss", Direction: study.Minimize, Take: study.TakeBest}, {Metric: "size", Direction: study.Minimize, Take: study.TakeLast},
	}
	s.Trial.Retries.Lost = new(10)
}

// A lost attempt sends no result, so what it has reached is that of its curve, which a new leader
// reads first. It is joined with what the attempts before it had, if it has continued them.
func TestWhatALostAttemptHasReached(t *testing.T) {
	c := newContinued(t, best)
	c.report(0, map[string]float64{"loss": 0.9, "size": 7, "other": 1})
	c.report(1, map[string]float64{"loss": 0.1})
	c.report(2, map[string]float64{"loss": 0.3})
	c.restart()
	c.want(c.lost(), &messaging.Reached{Attempt: 1,
		Best: values{"loss": 0.1, "size": 7}, Step: 1, Last: values{"loss": 0.3, "size": 7}, Steps: steps{"loss": 2, "size": 0}})

	c.report(3, map[string]float64{"loss": 0.4}) // it goes on
	c.want(c.lost(), &messaging.Reached{Attempt: 2,
		Best: values{"loss": 0.1, "size": 7}, Step: 1, Last: values{"loss": 0.4, "size": 7}, Steps: steps{"loss": 3, "size": 0}})

	c.restart() // an attempt that has reported nothing changes nothing
	c.want(c.lost(), &messaging.Reached{Attempt: 2,
		Best: values{"loss": 0.1, "size": 7}, Step: 1, Last: values{"loss": 0.4, "size": 7}, Steps: steps{"loss": 3, "size": 0}})

	c.report(0, map[string]float64{"loss": 0.8}) // it has begun anew
	c.want(c.lost(), &messaging.Reached{Attempt: 4, Best: values{"loss": 0.8}, Last: values{"loss": 0.8}, Steps: steps{"loss": 0}})
}

// An attempt that says what it has reached knows more than its curve, which lacks values that are not
// finite. Only the metrics that count are kept, and none of a trial that has ended.
func TestAnAttemptSaysWhatItHasReached(t *testing.T) {
	c := newContinued(t, best)
	c.report(0, map[string]float64{"loss": 0.9})
	r := c.result("w", 1, 1, messaging.OutcomeHandedBack)
	r.Reached = &messaging.Reached{
		Attempt: 1, Best: values{"loss": 0.2, "other": 1}, Step: 5, Last: values{"loss": 0.5}, Steps: steps{"loss": 8},
	}
	c.want(joined(c.step(Finished{At: c.now, Result: r}), c.after(0)),
		&messaging.Reached{Attempt: 1, Best: values{"loss": 0.2}, Step: 5, Last: values{"loss": 0.5}, Steps: steps{"loss": 8}})
	done := c.result("w", 1, 2, messaging.OutcomeCompleted)
	done.Values = study.Values{0.2, 7}
	c.step(Finished{At: c.now, Result: done})
	if got := c.e.trials.numbered(1).record().Reached; got != nil {
		t.Errorf("a trial that has ended keeps %+v", got)
	}
}

// A trial that is stopped early after an interruption has the best value of all of its attempts.
func TestAStoppedTrialHasReachedItsBestInAnyAttempt(t *testing.T) {
	c := newContinued(t, func(s *study.Spec) {
		s.Objective.Take = study.TakeBest
		s.EarlyStopping = &study.EarlyStopping{Name: "threshold", Metric: "loss", Settings: map[string]any{"upper": 0.95}}
	})
	c.report(0, map[string]float64{"loss": 0.1})
	c.lost()
	c.claim()
	c.report(1, map[string]float64{"loss": 1})
	if s := c.e.trials.numbered(1).rec.Stopped; s == nil || len(s.Values) != 1 || s.Values[0] != 0.1 {
		t.Errorf("stopped by %+v, want the value 0.1", s)
	}
}
