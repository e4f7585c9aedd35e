package display_test

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/exchange/export"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/study"
)

// BenchmarkFiles writes what a run of 50,000 trials writes at its end, and reports the memory of the trials and
// the most of all. The garbage collector is set as at the end of a run.
func BenchmarkFiles(b *testing.B) {
	before := heap()
	r := large(50_000)
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	trials := heap() - before
	most := uint64(0)
	for b.Loop() {
		dir, done := b.TempDir(), make(chan struct{})
		var watching sync.WaitGroup
		watching.Go(func() {
			for {
				most = max(most, heap())
				select {
				case <-done:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
		if err := display.WriteFiles(dir, r, export.Of(&r.Study.Definition.Spec, r.List()).CSV); err != nil {
			b.Fatal(err)
		}
		if err := display.WriteReport(b.Context(), dir, r, "test"); err != nil {
			b.Fatal(err)
		}
		close(done)
		watching.Wait()
	}
	b.ReportMetric(float64(most)/(1<<20), "most-MiB")
	b.ReportMetric(float64(trials)/(1<<20), "trials-MiB")
	runtime.KeepAlive(r)
}

// heap returns the bytes of all objects in memory.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// large is the result of a study of two parameters.
func large(trials int) *display.Result {
	random := rand.New(rand.NewPCG(1, 2))
	one, zero := 1.0, 0.0
	r := &display.Result{Status: record.Status{State: study.Completed, Counts: record.Counts{Completed: trials}}}
	spec := &r.Study.Definition.Spec
	spec.Objective = study.Objective{Metric: "loss", Direction: study.Minimize}
	spec.Parameters = []study.Parameter{{Name: "x", Type: study.Float, Min: &zero, Max: &one},
		{Name: "y", Type: study.Float, Min: &zero, Max: &one}}
	spec.Algorithm.Name = "random"
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := 1; n <= trials; n++ {
		at, x := start.Add(time.Duration(n)*time.Millisecond), random.Float64()
		t := completed(n, int64(n), x*x)
		t.Point = study.Point{"x": x, "y": random.Float64()}
		t.Times = record.Times{Suggested: at, Created: at, Claimed: at, Started: at, Ended: at.Add(time.Millisecond),
			Folded: at.Add(time.Millisecond)}
		t.Attempts = []record.Attempt{{Number: 1, State: study.AttemptSucceeded, Worker: "w", Opened: at, Claimed: at, Started: at,
			Ended: at.Add(time.Millisecond)}}
		r.Trials = append(r.Trials, t)
	}
	r.Best = &r.Trials[0]
	for i := range r.Trials {
		if r.Trials[i].Values.First() < r.Best.Values.First() {
			r.Best = &r.Trials[i]
		}
	}
	return r
}
