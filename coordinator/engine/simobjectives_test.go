package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// A third of the simulated studies have two or three objectives. The first value decides
// the others, so that values taken from two reports are noticed.

// drawObjectives gives the study its objectives. They have a source of their own, so that
// seeds give the same schedules as without.
func (w *world) drawObjectives() {
	var spec record.Study
	decode(w.led.study, &spec)
	s := &spec.Definition.Spec
	w.objectives = []study.Objective{s.Objective}
	rng := rand.New(rand.NewPCG(w.seed, 2))
	if rng.IntN(3) > 0 {
		return
	}
	w.objectives[0].Goal = nil
	w.objectives = append(w.objectives, study.Objective{Metric: "size", Direction: study.Maximize, Take: study.TakeLast})
	if rng.IntN(2) == 0 {
		w.objectives = append(w.objectives, study.Objective{Metric: "time", Direction: study.Minimize, Take: study.TakeLast})
	}
	s.Objective, s.Several = study.Objective{}, w.objectives
	w.led = newLedger(spec)
}

// valuesOf returns what an evaluation finds whose value of the first objective is this. The
// others have few levels, so that values are often equal.
func (w *world) valuesOf(first float64) study.Values {
	values := study.Values{first}
	for i := range w.objectives[1:] {
		values = append(values, math.Floor(math.Mod(first*float64(10+i), 1)*8)/8)
	}
	return values
}

// metricsOf are the metrics of a report whose value of the first objective is this.
func (w *world) metricsOf(first float64) map[string]float64 {
	metrics := map[string]float64{}
	for i, v := range w.valuesOf(first) {
		metrics[w.objectives[i].Metric] = v
	}
	return metrics
}

// isWhole reports whether values come from one report, and from all of it.
func (w *world) isWhole(v study.Values) bool {
	return len(v) > 0 && slices.Equal(v, w.valuesOf(v.First()))
}

// front: the ledger gives as the front the completed trials in the space and within all limits that
// no other one dominates. They are counted here pair by pair.
func (c *checker) front(w *world) {
	if len(w.objectives) == 1 && w.limits == nil || w.e == nil {
		return
	}
	spec := w.e.Spec()
	var trials []record.Trial
	for n := 1; n <= len(w.led.trials); n++ {
		var t record.Trial
		decode(w.led.trials[n], &t)
		trials = append(trials, t)
	}
	counts := func(t *record.Trial) bool {
		return t.State == study.TrialCompleted && within(w.e, *t) && isWithin(&spec.Definition.Spec, t)
	}
	var want []int
	for i := range trials {
		beaten := slices.ContainsFunc(trials, func(other record.Trial) bool {
			return counts(&other) && counts(&trials[i]) && w.better(other.Values, trials[i].Values)
		})
		if counts(&trials[i]) && !beaten {
			want = append(want, trials[i].Number)
		}
	}
	front, err := spec.Front(trials)
	var got []int
	for i := range front {
		got = append(got, front[i].Number)
	}
	if err != nil || !slices.Equal(got, want) {
		c.fail("the front is of the trials %v, want %v: %v", got, want, err)
	}
}

// better reports whether values are at least as good in every objective, and not equal.
func (w *world) better(a, b study.Values) bool {
	for i, o := range w.objectives {
		if sign := map[study.Direction]float64{study.Minimize: 1, study.Maximize: -1}[o.Direction]; sign*a[i] > sign*b[i] {
			return false
		}
	}
	return !slices.Equal(a, b)
}

// TestSimulatorHasFronts checks that the schedules have studies of several objectives to look
// at, and that some of their fronts have several trials.
func TestSimulatorHasFronts(t *testing.T) {
	studies, compromises := map[int]int{}, 0 // by the number of objectives; of several trials
	for seed := uint64(1); seed <= 60; seed++ {
		w := newWorld(seed, 0)
		if len(w.objectives) == 1 {
			continue
		}
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		studies[len(w.objectives)]++
		var trials []record.Trial
		for n := range w.led.trials {
			var r record.Trial
			decode(w.led.trials[n], &r)
			trials = append(trials, r)
		}
		spec := w.e.Spec()
		front, err := spec.Front(trials)
		if err != nil {
			t.Fatal(err)
		}
		if len(front) > 1 {
			compromises++
		}
	}
	if studies[2] < 5 || studies[3] < 5 || compromises < 8 {
		t.Errorf("%d studies have two objectives, %d three, and %d have more than one trial on the front; want 5, 5 and 8", studies[2], studies[3], compromises)
	}
}
