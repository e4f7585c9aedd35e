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
	if rng.IntN(2) == 0 {
		for i := range w.objectives {
			w.objectives[i].Reference = new([]float64{1, 0, 1}[i])
		}
		if rng.IntN(2) == 0 {
			s.Goal = &study.FrontGoal{Hypervolume: 0.4 + 0.4*rng.Float64()}
		}
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
// no other one dominates, and the status has their number and hypervolume. They are counted here
// pair by pair, and the hypervolume cell by cell.
func (c *checker) front(w *world) {
	if len(w.objectives) == 1 && w.limits == nil || w.e == nil {
		return
	}
	spec, status := w.e.Spec(), w.e.Status().Front
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
	if len(w.objectives) == 1 {
		if status != nil {
			c.fail("the status of one objective has the front %+v", status)
		}
		return
	}
	if status == nil || status.Size != len(want) {
		c.fail("the front has %d trials, and the status says %+v", len(want), status)
		return
	}
	var values []study.Values
	for i := range trials {
		if counts(&trials[i]) {
			values = append(values, trials[i].Values)
		}
	}
	volume, measured := dominated(spec.Definition.Spec.Several, values)
	if measured != (status.Hypervolume != nil) || measured && math.Abs(*status.Hypervolume-volume) > 1e-12 {
		c.fail("the front dominates %v, and the status says %+v", volume, status)
	}
	if goal := spec.Definition.Spec.Goal; goal != nil && w.e.running() && volume >= goal.Hypervolume+1e-12 {
		c.fail("the study is running although its front dominates %v, and the goal is %v", volume, goal.Hypervolume)
	}
}

// dominated adds up the cells between the values and the references that one of the values
// dominates; false if an objective has no reference.
func dominated(objectives []study.Objective, values []study.Values) (volume float64, measured bool) {
	edges := make([][]float64, len(objectives)) // as costs
	cost := func(k int, v float64) float64 { return objectives[k].Direction.Cost(v) }
	for k, o := range objectives {
		if o.Reference == nil {
			return 0, false
		}
		reference := cost(k, *o.Reference)
		edges[k] = []float64{reference}
		for _, v := range values {
			if at := cost(k, v[k]); at < reference {
				edges[k] = append(edges[k], at)
			}
		}
		slices.Sort(edges[k])
	}
	var add func(corner []float64, size float64)
	add = func(corner []float64, size float64) {
		k := len(corner)
		if k < len(objectives) {
			for i := range edges[k][1:] {
				add(append(slices.Clip(corner), edges[k][i]), size*(edges[k][i+1]-edges[k][i]))
			}
			return
		}
		if slices.ContainsFunc(values, func(v study.Values) bool {
			for k := range corner {
				if cost(k, v[k]) > corner[k] {
					return false
				}
			}
			return true
		}) {
			volume += size
		}
	}
	add(nil, 1)
	return volume, true
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
	needsAll(t)
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
		t.Errorf("%d studies have two objectives, %d three, and %d have more than one trial on the front; want 5, 5 and 8", studies[2],
			studies[3], compromises)
	}
}
