package gp_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

const benchDim = 9

var benchSizes = []int{32, 128, 512, 1000}

func benchModel(b *testing.B, n int) *gp.Model {
	b.Helper()
	x, y := sample(n, benchDim, 1)
	m, err := gp.Condition(kernel.NewMatern52(kernel.Continuous(benchDim)), hyper(1, 0.01, repeat(0.8, benchDim)...), x, y)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// BenchmarkFit measures a cold fit, one that starts from an earlier fit to
// nearly the same data, and one that takes the hyperparameters of a subset.
func BenchmarkFit(b *testing.B) {
	for _, n := range benchSizes {
		x, y := sample(n, benchDim, 1)
		k := kernel.NewMatern52(kernel.Continuous(benchDim))
		cold := gp.DefaultConfig(benchDim)
		first, err := gp.Fit(b.Context(), k, x.Slice(0, n-8, 0, benchDim), y[:n-8], cold, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			b.Fatal(err)
		}
		warm, h := cold, first.Model.Hyperparameters()
		warm.Warm, warm.Starts, warm.Explore, warm.Polish = &h, 1, 0, 5
		subset := warm
		subset.Explore, subset.Polish = 10, 0
		for _, c := range []struct {
			name   string
			config gp.Config
		}{{"cold", cold}, {"warm", warm}, {"subset", subset}} {
			b.Run(fmt.Sprintf("n=%d/%s", n, c.name), func(b *testing.B) {
				var r *gp.Result
				for b.Loop() {
					if r, err = gp.Fit(b.Context(), k, x, y, c.config, rand.New(rand.NewPCG(1, 1))); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(r.Evaluations), "gradients")
				b.ReportMetric(r.LogPosterior, "log-posterior")
			})
		}
	}
}

func BenchmarkCondition(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			for b.Loop() {
				benchModel(b, n)
			}
		})
	}
}

func BenchmarkPosterior1000Points(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			m := benchModel(b, n)
			at, _ := sample(1000, benchDim, 2)
			for b.Loop() {
				m.Posterior(at)
			}
		})
	}
}

// BenchmarkExtend measures adding eight fantasies and updating a thousand
// candidates after each.
func BenchmarkExtend(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			m := benchModel(b, n)
			at, _ := sample(1000, benchDim, 2)
			pending, _ := sample(8, benchDim, 3)
			for b.Loop() {
				b.StopTimer()
				f := m.Fantasies()
				c := f.Candidates(at)
				b.StartTimer()
				for i := range 8 {
					f.Believe(pending.Slice(i, i+1, 0, benchDim))
					c.Posterior()
				}
			}
		})
	}
}

// BenchmarkGradients measures the posterior's gradients at ten points.
func BenchmarkGradients(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			f := benchModel(b, n).Fantasies()
			at, _ := sample(10, benchDim, 2)
			for b.Loop() {
				f.Gradients(at)
			}
		})
	}
}
