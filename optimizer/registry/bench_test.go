package registry

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// BenchmarkSuggest is the table of all algorithms in docs/tune/benchmarks.md: a request for 8 points in 9
// dimensions, after n evaluations at random points and of the points of earlier requests. docs/operate/limits.md
// has the processor time of one point.
func BenchmarkSuggest(b *testing.B) {
	for _, e := range Entries() {
		if e.Name == "pt" { // hands over to gp in so many dimensions; package pt measures it
			continue
		}
		o := e.Create(optimizertest.Defaults(b, e.Settings))
		for _, n := range []int{120, 1000} {
			b.Run(fmt.Sprintf("%s/n=%d", e.Name, n), func(b *testing.B) {
				made := newBowl(b, o, n)
				var state optimizer.State
				suggest := func() {
					suggested, next, err := o.Suggest(b.Context(), made.problem, state, 8, optimizer.NewRand(1, made.problem.First))
					if err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					for _, s := range suggested {
						made.observe(s.Point)
					}
					state = next
					b.StartTimer()
				}
				for range 3 { // lgp begins a Markov chain for each of three scales
					suggest()
				}
				before := processorTime(b)
				for b.Loop() {
					suggest()
				}
				b.ReportMetric((processorTime(b)-before).Seconds()*1e3/float64(8*b.N), "cpu-ms/point")
			})
		}
	}
}

// processorTime returns how long processors have worked for this process and in the kernel for it.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// bowl is a study of 9 numbers whose objective is a wide valley.
type bowl struct{ problem *optimizer.Problem }

// newBowl returns a study after n evaluations at random points.
func newBowl(b *testing.B, o optimizer.Optimizer, n int) bowl {
	const dimensions = 9
	s := bowl{&optimizertest.NewSession(b, o, optimizertest.Cube(b, dimensions, 0, 1), 1).Problem}
	s.problem.MaxTrials = 2 * n
	rng := optimizer.NewRand(1, 1)
	for range n {
		p := study.Point{}
		for i := range dimensions {
			p[fmt.Sprintf("x%d", i+1)] = rng.Float64()
		}
		s.observe(p)
	}
	return s
}

// observe adds the evaluation of a point.
func (s bowl) observe(p study.Point) {
	value := 0.0
	for _, x := range p {
		d := x.(float64) - 0.5
		value += d * d
	}
	s.problem.First++
	s.problem.Observations = append(s.problem.Observations, optimizer.Observation{
		Trial: len(s.problem.Observations) + 1, Point: p, Outcome: optimizer.OutcomeCompleted, Values: study.Values{value},
	})
}
