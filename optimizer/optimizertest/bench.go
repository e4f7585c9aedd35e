package optimizertest

import (
	"fmt"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

// Defaults returns an optimiser's settings with their defaults.
func Defaults(t testing.TB, s setting.Set) setting.Values {
	t.Helper()
	v, err := s.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Benchmark measures requests for 8 points of 9 dimensions after n evaluations at random
// points. Each request has a new optimiser and no state, as after a failover.
func Benchmark(b *testing.B, newOptimizer func() optimizer.Optimizer, evaluations ...int) {
	for _, n := range evaluations {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			s := NewSession(b, newOptimizer(), Cube(b, 9, 0, 1), 1)
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
				if _, _, err := newOptimizer().Suggest(b.Context(), &s.Problem, nil, 8, optimizer.NewRand(1, n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
