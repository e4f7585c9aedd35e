package simulation

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// Some studies limit the memory of their trials and the loss, and change that while they run. The
// first value decides the memory, so that metrics taken from another report are noticed.

// limitable gives a study's specification an algorithm that takes limits and several objectives. Its
// population is small, so that its suggestions soon depend on the results.
func limitable(spec map[string]any) {
	if a := spec["algorithm"].(map[string]any); a["name"] != "random" && a["name"] != "sobol" {
		a["name"], a["settings"] = "nsga2", map[string]any{"population": 4}
	}
}

// drawLimits draws the limits of a study; which is 0 for those at its beginning, and 1 for later ones.
func (w *world) drawLimits(i, which int) (list []any) {
	if w.draw("limit of memory", i, which) < 0.8 {
		list = append(list, map[string]any{
			"metric": "memory", "max": math.Floor(4+4*w.draw("memory", i, which)) / 8, "early": w.draw("early", i, which) < 0.7,
		})
	}
	if w.draw("limit of loss", i, which) < 0.4 {
		list = append(list, map[string]any{"metric": "loss", "max": 0.4 + 0.6*w.draw("loss", i, which)})
	}
	return list
}

// memoryOf returns the memory of an evaluation whose value of the first objective is this. It
// has few levels, so that some are equal to a bound, and is not finite now and then.
func memoryOf(first float64) float64 {
	if math.Mod(first*13, 1) < 0.1 {
		return math.NaN()
	}
	return math.Floor(math.Mod(first*5, 1)*8) / 8
}

// remember adds the memory to the metrics of an evaluation, as a worker does: JSON has no NaN.
func remember(metrics map[string]float64, first float64) map[string]float64 {
	if memory := memoryOf(first); !math.IsNaN(memory) {
		metrics["memory"] = memory
	}
	return metrics
}

// earlyMemory returns the metrics of an evaluation by a worker that did not complete.
func earlyMemory(trial int) map[string]float64 {
	return map[string]float64{"memory": float64(trial%8) / 8}
}

// early checks that trials which did not complete, and which workers evaluated, have no other memory
// than what was reported of them.
func (c *checker) early(s *ledger.Records) {
	spec := &s.Study.Definition.Spec
	for i := range s.Trials {
		t := &s.Trials[i]
		if spec.ByClients() || spec.Limits == nil || t.State == study.TrialCompleted {
			continue
		}
		if memory, ok := t.Metrics["memory"]; ok && memory != earlyMemory(t.Number)["memory"] {
			c.fail("trial %d of study %s is %s with the memory %v", t.Number, s.Study.ID, t.State, memory)
		}
	}
}

// keptMemory reports whether a completed trial has the memory of its value.
func keptMemory(t *record.Trial) bool {
	memory, ok := t.Metrics["memory"]
	if want := memoryOf(t.Values.First()); !math.IsNaN(want) {
		return ok && memory == want
	}
	return !ok
}

// changeLimits updates a study, some time after it was created.
func (w *world) changeLimits(ctx context.Context, s *study.Study, i int) {
	sleep(ctx, time.Duration((5+40*w.draw("time of change", i))*float64(time.Second)))
	for n := 0; ctx.Err() == nil; n++ {
		if c := w.coordinators[n%len(w.coordinators)].running(); c != nil {
			call, cancel := context.WithTimeout(ctx, 10*time.Second)
			err := c.Update(call, s.Metadata.Name, s, 0)
			cancel()
			switch {
			case err == nil:
				return
			case !errors.Is(err, coordinator.ErrNotLeader) && !errors.Is(err, ledger.ErrNotFound):
				w.logs.note("change limits: " + err.Error())
			}
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

// withinAll reports whether a trial is completed within all limits of its study.
func withinAll(spec *study.Spec, t *record.Trial) bool {
	if t.State != study.TrialCompleted {
		return false
	}
	for _, l := range spec.Limits {
		value, ok := t.Metrics[l.Metric]
		if l.Metric == "loss" {
			value, ok = t.Values[0], true
		}
		if !ok || value > *l.Max {
			return false
		}
	}
	return true
}

// limits checks how many trials the status counts within all limits, and that the best of a single
// objective is one of them and of the front. With a fidelity, the best is one of the highest level.
func (c *checker) limits(s *ledger.Records, front []int) {
	c.early(s)
	spec, within := &s.Study.Definition.Spec, 0
	for i := range s.Trials {
		if withinAll(spec, &s.Trials[i]) {
			within++
		}
	}
	if l := s.Status.Limits; len(spec.Limits) > 0 && (l != nil || within > 0) && (l == nil || l.Within != within) {
		c.fail("of the trials of study %s %d are within all limits, and its status says %+v", s.Study.ID, within, l)
	}
	if best := s.Status.Best; spec.Several == nil && !hasFidelity(&s.Study.Definition) && (best != 0 || len(front) > 0) &&
		!slices.Contains(front, best) {
		c.fail("trial %d is the best of study %s, want one of %v", best, s.Study.ID, front)
	}
}

// TestDrawnLimits checks that the schedules have studies with limits to look at, with one objective
// and with several, and that some change their limits.
func TestDrawnLimits(t *testing.T) {
	var one, several, changed, early int
	for seed := uint64(1); seed <= 60; seed++ {
		w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 2))}
		for i := range 3 {
			s, later := w.newStudy(i)
			switch {
			case s.Spec.Limits == nil:
			case s.Spec.Several == nil:
				one++
			default:
				several++
			}
			if later != nil {
				changed++
			}
			early += len(s.Spec.EarlyMetrics())
		}
	}
	if one < 10 || several < 10 || changed < 20 || early < 10 {
		t.Errorf("%d studies with limits have one objective and %d several, %d change them, and of %d the memory is known early; want 10, 10, "+
			"20 and 10", one, several, changed, early)
	}
}
