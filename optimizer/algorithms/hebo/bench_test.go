package hebo

import (
	"fmt"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// BenchmarkSuggest is a request for 8 points of 9 dimensions in the middle of a
// study: warm hyperparameters, 7 pending points.
func BenchmarkSuggest(b *testing.B) {
	for _, n := range []int{32, 128, 512, 1000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			s := observed(b, n)
			o := New(DefaultOptions())
			p := s.Problem
			b.ResetTimer()
			for range b.N {
				if _, _, err := o.Suggest(b.Context(), &p, s.State, 8, optimizer.NewRand(p.Seed, p.First)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkQuickTrials is a whole study of an evaluation that takes no time, one trial after another.
func BenchmarkQuickTrials(b *testing.B) {
	for _, n := range []int{128, 500, 1000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			for b.Loop() {
				s := optimizertest.NewSession(b, New(DefaultOptions()), optimizertest.Cube(b, 5, -5, 5), 1)
				s.Run(n, 1, sphere)
				b.ReportMetric(1e6*s.Best(), "best·1e6")
			}
		})
	}
}

// sphere is the sum of squares, around another place in each parameter.
func sphere(p study.Point) (value float64) {
	for i := range len(p) {
		x := p[fmt.Sprintf("x%d", i+1)].(float64) - 1 - 0.3*float64(i)
		value += x * x
	}
	return value
}

// BenchmarkSuggestSeveral is BenchmarkSuggest for one to three objectives, so that their
// times can be compared.
func BenchmarkSuggestSeveral(b *testing.B) {
	for objectives := 1; objectives <= 3; objectives++ {
		b.Run(fmt.Sprintf("n=120/objectives=%d", objectives), func(b *testing.B) {
			s := observed(b, 120)
			o := New(DefaultOptions())
			p := s.Problem
			for k := range objectives {
				if objectives > 1 {
					p.Objectives = append(p.Objectives, study.Objective{Metric: fmt.Sprint("f", k), Direction: study.Minimize})
				}
			}
			for i, told := range p.Observations {
				first := told.Values.First()
				values := study.Values{first, told.Point["x1"].(float64) - first, told.Point["x2"].(float64) * first}
				p.Observations[i].Values = values[:objectives]
			}
			_, state, err := o.Suggest(b.Context(), &p, nil, 8, optimizer.NewRand(p.Seed, p.First))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, _, err := o.Suggest(b.Context(), &p, state, 8, optimizer.NewRand(p.Seed, p.First)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFront is a request for one point by the ensemble's Pareto front.
func BenchmarkFront(b *testing.B) {
	for _, n := range []int{32, 128} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			s := observed(b, n)
			o := New(options(func(o *Options) { o.Acquisition = MACE }))
			p := s.Problem
			b.ResetTimer()
			for range b.N {
				if _, _, err := o.Suggest(b.Context(), &p, s.State, 1, optimizer.NewRand(p.Seed, p.First)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// observed returns a study of the unit cube with n observations near the best
// point, as an optimiser leaves them, and 7 pending points.
func observed(tb testing.TB, n int) *optimizertest.Session {
	tb.Helper()
	const dim = 9
	s := optimizertest.NewSession(tb, New(DefaultOptions()), optimizertest.Cube(tb, dim, 0, 1), 1)
	s.Problem.Parallelism, s.Problem.MaxTrials = 8, 2*n
	rng := optimizer.NewRand(1, 1)
	for trial := 1; trial <= n; trial++ {
		point, value := study.Point{}, 0.01*rng.NormFloat64()
		for i := range dim {
			x := rng.Float64()
			if trial > 20 {
				x = 0.4 + 0.3*x
			}
			point[fmt.Sprintf("x%d", i+1)] = x
			value += (x - 0.5) * (x - 0.5) * float64(i+1)
		}
		s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
			Trial: trial, Point: point, Outcome: optimizer.OutcomeCompleted, Values: []float64{value},
		})
	}
	s.Problem.First = n + 1
	s.Ask(7)
	return s
}
