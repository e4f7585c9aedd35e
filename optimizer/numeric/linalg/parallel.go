package linalg

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Chunks returns how many chunks of at most grain indices cover 0..n-1. It
// panics if grain is not positive.
func Chunks(n, grain int) int {
	if grain <= 0 {
		panic("linalg: grain is not positive")
	}
	return (n + grain - 1) / grain
}

// Parallel calls f(chunk, lo, hi) for each of the Chunks(n, grain) half-open ranges
// [lo, hi) that cover 0..n-1, on up to GOMAXPROCS goroutines, and returns when all
// calls have returned. The ranges depend only on n and grain. An f that keeps its
// partial sums by chunk, to be added in order afterwards, therefore gives the same
// result bit for bit on any number of cores. f must be safe for concurrent calls with
// different chunks.
func Parallel(n, grain int, f func(chunk, lo, hi int)) {
	chunks := Chunks(n, grain)
	workers := min(runtime.GOMAXPROCS(0), chunks)
	if workers <= 1 {
		for c := range chunks {
			f(c, c*grain, min((c+1)*grain, n))
		}
		return
	}
	var next atomic.Int64
	run := func() {
		for c := int(next.Add(1)) - 1; c < chunks; c = int(next.Add(1)) - 1 {
			f(c, c*grain, min((c+1)*grain, n))
		}
	}
	var wg sync.WaitGroup
	for range workers - 1 {
		wg.Go(run)
	}
	run()
	wg.Wait()
}
