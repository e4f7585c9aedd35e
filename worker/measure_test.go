package worker

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

func TestMeasurementsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(_ context.Context, _ study.Point, task evaluation.Task) (float64, error) {
			for step := range 10_000 {
				task.Measure(int64(step), map[string]float64{"error": float64(step)})
				time.Sleep(time.Millisecond)
			}
			return 1, nil
		}, membus.Options{})
		r.start()
		r.offer(assigned(1))
		r.untilTold(1)
		synctest.Wait()
		n := len(r.seen().measured)
		if most := 10*measurementsPerSecond + measurementBurst + maxWaiting; n > most || n < 10*measurementsPerSecond {
			t.Errorf("%d measurements in 10 s, want %d a second", n, measurementsPerSecond)
		}
		if last := r.seen().measured[n-1]; last.Step != 9_999 {
			t.Errorf("the last measurement is that of step %d", last.Step)
		}
	})
}

// Every report of a program that is not too fast for it arrives, in order, while
// the bus fails; those that are left at the attempt's end come later.
func TestMeasurementsArriveInOrder(t *testing.T) {
	const n = 80
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		r := newRig(t, func(_ context.Context, _ study.Point, job evaluation.Task) (float64, error) {
			for step := range n {
				job.Measure(int64(step), map[string]float64{"error": 1})
				time.Sleep(10 * time.Millisecond)
			}
			return 1, nil
		}, membus.Options{Fault: func(e membus.Event) membus.Fault {
			if e.Op != membus.OpMetric {
				return membus.Fault{}
			}
			switch k := tries.Add(1); {
			case k%5 == 0:
				return membus.Fault{Lost: true}
			case k%7 == 0:
				return membus.Fault{Unanswered: true}
			}
			return membus.Fault{}
		}})
		r.start()
		r.offer(assigned(1))
		r.untilTold(1)
		r.until("the last report", func() bool { return len(r.measured) > 0 && r.measured[len(r.measured)-1].Step == n-1 })
		next := int64(0)
		for _, m := range r.seen().measured {
			if m.Step > next {
				t.Fatalf("step %d came before step %d", m.Step, next)
			}
			next = max(next, m.Step+1)
		}
	})
}

// Of what waits, the last report of each metric is never dropped.
func TestThinningKeepsEachMetricsLast(t *testing.T) {
	m := newMeasurer(&run{measuring: t.Context(), options: Options{Logger: slog.New(slog.DiscardHandler)}})
	m.done = make(chan struct{}) // nothing is published
	for step := range int64(1000) {
		metrics := map[string]float64{"often": 1}
		if step == 3 || step == 500 {
			metrics = map[string]float64{fmt.Sprint("rare", step): 1}
		}
		one := &messaging.Measurement{Step: step, Metrics: metrics}
		if step == 4 {
			one = &messaging.Measurement{Step: step, Diverged: []string{"diverged"}}
		}
		m.add(one)
	}
	last, before := map[string]int64{}, int64(-1)
	for _, w := range m.waiting {
		for metric := range w.Metrics {
			last[metric] = w.Step
		}
		for _, metric := range w.Diverged {
			last[metric] = w.Step
		}
		if w.Step <= before {
			t.Fatalf("step %d is after %d", w.Step, before)
		}
		before = w.Step
	}
	if len(m.waiting) > maxWaiting || last["often"] != 999 || last["rare3"] != 3 || last["rare500"] != 500 || last["diverged"] != 4 ||
		m.waiting[0].Step != 0 {
		t.Errorf("%d wait, from step %d, and the last are %v", len(m.waiting), m.waiting[0].Step, last)
	}
}

// JSON has no NaN: a measurement names the metrics that are not finite.
func TestDivergedMeasurementsArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(_ context.Context, _ study.Point, task evaluation.Task) (float64, error) {
			task.Measure(1, map[string]float64{"error": math.NaN(), "loss": math.Inf(-1), "lr": 0.5})
			task.Measure(2, map[string]float64{"error": math.Inf(1)})
			return 1, nil
		}, membus.Options{})
		r.start()
		r.offer(assigned(1))
		r.untilTold(1)
		synctest.Wait()
		var got []string
		for _, m := range r.seen().measured {
			got = append(got, fmt.Sprint(m.Step, m.Metrics, m.Diverged))
		}
		if want := []string{"1 map[lr:0.5] [error loss]", "2 map[] [error]"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestFewMeasurementsAllArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(_ context.Context, _ study.Point, task evaluation.Task) (float64, error) {
			for step := range task.Assignment.Trial {
				task.Measure(int64(step), map[string]float64{"error": 1})
			}
			if task.Assignment.Trial == 2 {
				time.Sleep(time.Second)
			}
			return 1, nil
		}, membus.Options{})
		r.start()
		r.offer(assigned(1), assigned(2), assigned(measurementBurst))
		r.untilTold(measurementBurst)
		synctest.Wait()
		of := map[int]int{}
		for _, m := range r.seen().measured {
			of[m.Trial]++
		}
		// The single report of trial 1 is in its result.
		if of[1] != 0 || of[2] != 2 || of[measurementBurst] != measurementBurst {
			t.Errorf("measurements of each trial: %v", of)
		}
	})
}
