package local_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/study"
)

// BenchmarkTrials runs whole studies of a program in stream mode that answers at once.
// Every result is durable in etcd before its receipt.
func BenchmarkTrials(b *testing.B) {
	const trials, workers = 2000, 8
	var seconds float64
	var overheads []time.Duration
	for b.Loop() {
		s := parse(b, streamStudy, "random", trials, 2*workers, self(b))
		r, err := local.Run(b.Context(), local.Options{Study: s, State: stateDir(b), Workers: workers})
		if err != nil {
			b.Fatal(err)
		}
		if r.Status.State != study.Completed || r.Status.Counts.Completed != trials {
			b.Fatalf("the study ended %s with %+v", r.Status.State, r.Status.Counts)
		}
		seconds += r.Status.Ended.Sub(r.Status.Started).Seconds()
		for i := range r.Trials {
			times := r.Trials[i].Times
			overheads = append(overheads, times.Folded.Sub(times.Claimed)-times.Ended.Sub(times.Started))
		}
	}
	slices.Sort(overheads)
	b.ReportMetric(float64(len(overheads))/seconds, "trials/s")
	b.ReportMetric(overheads[len(overheads)/2].Seconds()*1e3, "overhead-p50-ms")
	b.ReportMetric(overheads[len(overheads)*99/100].Seconds()*1e3, "overhead-p99-ms")
}

// BenchmarkFirstClaim measures a cold start: from the call to the first trial's claim.
func BenchmarkFirstClaim(b *testing.B) {
	var first time.Duration
	for b.Loop() {
		s := parse(b, streamStudy, "gp", 1, 1, self(b))
		start := time.Now()
		r, err := local.Run(b.Context(), local.Options{Study: s, State: stateDir(b)})
		if err != nil {
			b.Fatal(err)
		}
		first += r.Trials[0].Times.Claimed.Sub(start)
	}
	b.ReportMetric(first.Seconds()/float64(b.N), "s/first-claim")
}

// BenchmarkMemory reports the memory of a process that runs everything, near the end of
// a study.
func BenchmarkMemory(b *testing.B) {
	for _, trials := range []int{10_000, 50_000} {
		b.Run(fmt.Sprintf("trials=%d", trials), func(b *testing.B) { benchmarkMemory(b, trials) })
	}
}

func benchmarkMemory(b *testing.B, trials int) {
	const workers = 8
	for b.Loop() {
		s := parse(b, streamStudy, "random", trials, 2*workers, self(b))
		var heap, system uint64
		progress := func(p coordinator.Progress, _ local.Trials) {
			if heap == 0 && p.Status.Counts.Ended() > trials*99/100 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				heap, system = m.HeapAlloc, m.Sys
			}
		}
		if _, err := local.Run(b.Context(), local.Options{Study: s, State: stateDir(b), Workers: workers, Progress: progress}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heap)/(1<<20), "heap-MiB")
		b.ReportMetric(float64(system)/(1<<20), "from-system-MiB")
	}
}
