package cmaes

import (
	"fmt"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// BenchmarkSuggest is a request for 8 points of 9 dimensions after n evaluations at random
// points.
func BenchmarkSuggest(b *testing.B) {
	for _, n := range []int{120, 1000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			s := optimizertest.NewSession(b, New(defaults(b)), optimizertest.Cube(b, 9, 0, 1), 1)
			rng := optimizer.NewRand(1, 1)
			for trial := 1; trial <= n; trial++ {
				p, value := study.Point{}, 0.0
				for i := range 9 {
					x := rng.Float64()
					p[fmt.Sprintf("x%d", i+1)], value = x, value+(x-0.5)*(x-0.5)
				}
				s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
					Trial: trial, Point: p, Outcome: optimizer.OutcomeCompleted, Values: study.Values{value},
				})
			}
			s.Problem.First = n + 1
			for b.Loop() {
				if _, _, err := New(defaults(b)).Suggest(b.Context(), &s.Problem, nil, 8, optimizer.NewRand(1, n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
