package display

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// Twelve trials took a minute each, one after another, but for the slots that were empty for an hour. Of the 24, twelve are left,
// two at once: six minutes. The pace of the whole study says more than an hour.
func TestForecast(t *testing.T) {
	now := time.Now()
	s := study.Study{Spec: study.Spec{
		Objective: study.Objective{Metric: "error", Direction: study.Minimize}, Budget: study.Budget{MaxTrials: 24}, Parallelism: 2,
		Parameters: []study.Parameter{{Name: "x", Type: study.Float, Min: new(0.0), Max: new(1.0), Scale: study.Linear}},
	}}
	var trials []record.Trial
	for i := range 12 {
		start := now.Add(time.Duration(i-72) * time.Minute)
		trials = append(trials, record.Trial{
			Number: i + 1, State: study.TrialFailed, Point: study.Point{"x": float64(i) / 12},
			Times: record.Times{Started: start, Ended: start.Add(time.Minute)},
		})
	}
	p := coordinator.Progress{
		Study:  record.Study{Definition: s},
		Status: record.Status{State: study.Running, Started: now.Add(-72 * time.Minute), Counts: record.Counts{Failed: 12, Queued: 2}},
	}
	shown := func(f *Forecast, at time.Time, err error) time.Duration {
		n := NewNow(&p, at)
		f.Add(t.Context(), &n, OfRecords(&s, func(context.Context) ([]record.Trial, error) { return trials, err }))
		f.Wait()
		left, _ := n.left(at)
		return left
	}
	var f Forecast
	if left := shown(&f, now, nil); left < time.Hour {
		t.Errorf("before a forecast, %v are left; want what the pace says", left)
	}
	if left := shown(&f, now.Add(time.Second), nil); left < 5*time.Minute || left > 7*time.Minute {
		t.Errorf("by the forecast, %v are left", left)
	}
	if left := shown(&f, now.Add(4*time.Minute), nil); left < time.Minute || left > 3*time.Minute {
		t.Errorf("four minutes later, %v are left", left)
	}
	var broken Forecast
	for range 2 {
		if left := shown(&broken, now, errors.New("gone")); left < time.Hour {
			t.Errorf("without trials, %v are left", left)
		}
	}
}
