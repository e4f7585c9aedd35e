package hebo

import (
	"fmt"
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
)

// embedded is Hartmann6 in the first six columns; the others have no effect. dense is a
// bowl in all columns around a point off the centre.
func embedded(dim int) function {
	f := hartmann6()
	f.name, f.dim = "embedded", dim
	at := f.at
	f.at = func(x []float64) float64 { return at(x[:6]) }
	return f
}

func dense(dim int) function {
	return function{"dense", dim, 0, 1, 0, func(x []float64) float64 {
		var sum float64
		for i, v := range x {
			d := v - 0.3 - 0.4*math.Mod(float64(i)*math.Phi, 1)
			sum += d * d
		}
		return sum / float64(len(x))
	}}
}

// With many columns, the prior that grows with their number finds those that matter.
func TestManyDimensions(t *testing.T) {
	f := dense(20)
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, f.dim, f.lo, f.hi), 1)
	s.Run(40, 4, f.of)
	if best := s.Best(); best > 0.03 {
		t.Errorf("the best value over %d columns is %.3g, the minimum 0 and the mean of random points about 0.1", f.dim, best)
	}
}

// BenchmarkDimensions reports, under both priors on lengthscales, the mean log10 regret
// over five seeds after 80 evaluations, of which eight run at once.
func BenchmarkDimensions(b *testing.B) {
	for _, f := range []function{embedded(20), dense(20), embedded(50), dense(50), embedded(100), dense(100)} {
		for _, prior := range []surrogate.Lengthscales{surrogate.LengthscalesScaled, surrogate.LengthscalesFlat} {
			b.Run(fmt.Sprintf("%s/%d/%s", f.name, f.dim, prior), func(b *testing.B) {
				o := New(options(func(o *Options) { o.Surrogate.Lengthscales = prior }))
				for range b.N {
					b.ReportMetric(meanLogRegret(b, f, o, 80, 8, 5), "log10-regret")
				}
			})
		}
	}
}

func meanLogRegret(t testing.TB, f function, o optimizer.Optimizer, trials, parallelism, seeds int) float64 {
	t.Helper()
	var mean float64
	for seed := range seeds {
		s := optimizertest.NewSession(t, o, optimizertest.Cube(t, f.dim, f.lo, f.hi), uint64(seed))
		s.Run(trials, parallelism, f.of)
		mean += math.Log10(max(1e-9, s.Best()-f.minimum)) / float64(seeds)
	}
	return mean
}
