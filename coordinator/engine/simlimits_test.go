package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// A third of the simulated studies limit what their trials use, with one objective or several, and
// change their limits while they run. The first value decides what a trial uses, so that
// metrics taken from another report are noticed.

// drawLimits gives the study its limits. They have a source of their own, so that seeds give the
// same schedules as without.
func (w *world) drawLimits() {
	w.limits = rand.New(rand.NewPCG(w.seed, 3))
	if w.limits.IntN(3) > 0 {
		w.limits = nil
		return
	}
	var spec record.Study
	decode(w.led.study, &spec)
	spec.Definition.Spec.Limits = w.someLimits()
	w.led = newLedger(spec)
}

// someLimits draws up to three limits: on a metric that no objective has, and on the first objective.
func (w *world) someLimits() (list []study.Limit) {
	level := func(from int) *float64 { v := float64(from+w.limits.IntN(4)) / 8; return &v }
	if w.limits.IntN(5) > 0 {
		list = append(list, study.Limit{Metric: "memory", Max: level(4), Early: w.limits.IntN(2) == 0})
	}
	if w.limits.IntN(3) == 0 {
		list = append(list, study.Limit{Metric: "memory", Min: level(0), Early: w.limits.IntN(2) == 0})
	}
	if w.limits.IntN(3) == 0 {
		list = append(list, study.Limit{Metric: w.objectives[0].Metric, Max: level(3)})
	}
	return list
}

// used returns the metrics of an evaluation beside its objectives. They have few levels, so that
// some are equal to a bound, and are not finite now and then.
func (w *world) used(first float64) map[string]float64 {
	if w.limits == nil {
		return nil
	}
	memory := math.Floor(math.Mod(first*5, 1)*8) / 8
	if math.Mod(first*13, 1) < 0.1 {
		memory = math.NaN()
	}
	return map[string]float64{"memory": memory}
}

// early returns the metrics of an attempt that did not complete, if the study has limits. Some have
// none.
func (w *world) early(id messaging.AttemptID) map[string]float64 {
	if w.limits == nil || (id.Trial+id.Attempt)%3 == 0 {
		return nil
	}
	return map[string]float64{"memory": float64((3*id.Trial+id.Attempt)%8) / 8}
}

// kept reports whether a trial's record has what used returns for its value.
func (w *world) kept(t *record.Trial) bool {
	want, finite := w.used(t.Values.First())["memory"]
	got, has := t.Metrics["memory"]
	finite = finite && !math.IsNaN(want)
	return finite == has && got == map[bool]float64{true: want}[finite]
}

// misses returns which limits a completed trial is outside of, or whose metric it does not have.
func misses(s *study.Spec, t *record.Trial) (missed []bool) {
	for _, l := range s.Limits {
		value, ok := t.Metrics[l.Metric]
		if l.Metric == s.FirstObjective().Metric {
			value, ok = t.Values[0], true
		}
		missed = append(missed, !ok || l.Max != nil && value > *l.Max || l.Min != nil && value < *l.Min)
	}
	return missed
}

// isWithin reports whether a completed trial is within all limits.
func isWithin(s *study.Spec, t *record.Trial) bool { return !slices.Contains(misses(s, t), true) }

// tally: the status counts the completed trials in the space within each limit and within all.
func (c *checker) tally(e *Engine) {
	spec := &e.spec.Definition.Spec
	if len(spec.Limits) == 0 {
		if e.Status().Limits != nil {
			c.fail("the status counts trials within limits of a study without any: %+v", e.Status().Limits)
		}
		return
	}
	within, met, completed := 0, make([]int, len(spec.Limits)), 0
	for _, t := range c.trials {
		if t.State != study.TrialCompleted || e.spec.space.Check(t.Point) != nil {
			continue
		}
		completed++
		if isWithin(spec, &t) {
			within++
		}
		for i, missed := range misses(spec, &t) {
			if !missed {
				met[i]++
			}
		}
	}
	got := e.Status().Limits
	if got == nil {
		got = &record.Limits{Each: make([]record.LimitTally, len(met))}
	}
	var each []int
	for _, t := range got.Each {
		each = append(each, t.Met)
	}
	if got.Within != within || !slices.Equal(each, met) {
		c.fail("of %d completed trials %d are within all limits and %v within each, and the status says %d and %v", completed, within, met,
			got.Within, each)
	}
}

// limited: the optimiser is told which limits a trial is outside of.
func (c *checker) limited(e *Engine) {
	for _, o := range e.Problem().Observations {
		t := c.trials[o.Trial]
		if t.State != study.TrialCompleted {
			c.knownEarly(e, &t, o.Excess)
			continue
		}
		var told []bool
		for _, excess := range o.Excess {
			told = append(told, !(excess <= 0))
		}
		if want := misses(&e.spec.Definition.Spec, &t); !slices.Equal(told, want) {
			c.fail("trial %d is told as outside of the limits %v, want %v", o.Trial, told, want)
		}
	}
}

// knownEarly: of a trial that did not complete, the optimiser is told the limits that are known
// early, by a memory that the trial's record has.
func (c *checker) knownEarly(e *Engine, t *record.Trial, excess []float64) {
	var want []float64
	for i, l := range e.spec.Definition.Spec.Limits {
		memory, ok := t.Metrics[l.Metric]
		if !l.Early || !ok {
			continue
		}
		if want == nil {
			want = slices.Repeat([]float64{math.NaN()}, len(e.spec.Definition.Spec.Limits))
		}
		if want[i] = memory; l.Max != nil {
			want[i] -= *l.Max
		} else {
			want[i] = *l.Min - memory
		}
	}
	if !cmp.Equal(want, excess, cmpopts.EquateNaNs()) {
		c.fail("trial %d is %s with %v, and the optimiser is told that it is outside of the limits by %v, want %v", t.Number, t.State, t.Metrics,
			excess, want)
	}
}

// TestSimulatorHasLimits checks that the schedules have studies with limits to look at, that their
// limits change, and that some of their trials are within all limits and some are not.
func TestSimulatorHasLimits(t *testing.T) {
	needsAll(t)
	var one, several, changed, within, outside, early int
	for seed := uint64(1); seed <= 60; seed++ {
		w := newWorld(seed, 0)
		if w.limits == nil {
			continue
		}
		if len(w.objectives) > 1 {
			several++
		} else {
			one++
		}
		var before record.Study
		decode(w.led.study, &before)
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		spec := w.e.Spec()
		if !cmp.Equal(before.Definition.Spec.Limits, spec.Definition.Spec.Limits) {
			changed++
		}
		for n := range w.led.trials {
			var r record.Trial
			if decode(w.led.trials[n], &r); r.State != study.TrialCompleted {
				if spec.Definition.Spec.EarlyExcess(r.Metrics) != nil {
					early++
				}
				continue
			}
			if isWithin(&spec.Definition.Spec, &r) {
				within++
			} else {
				outside++
			}
		}
	}
	if one < 8 || several < 4 || changed < 4 || within < 40 || outside < 40 || early < 8 {
		t.Errorf("%d studies with limits have one objective and %d several, %d changed their limits, %d trials are within and %d outside, and "+
			"of %d others a limit is known; want 8, 4, 4, 40, 40 and 8",
			one, several, changed, within, outside, early)
	}
}
