package bayestest

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
)

// Acquisition tests an implementation, with noise and without.
func Acquisition(t *testing.T, a bayes.Acquisition) {
	for _, noise := range []float64{0, 0.2} {
		known := &bayes.Known{Incumbent: -0.1, Noise: noise}
		score := func(mean, variance float64) float64 { return a.Value(known, mean, variance) }
		t.Run("gradient", func(t *testing.T) { slopes(t, a, known) })
		t.Run("a lower mean is better", func(t *testing.T) {
			for m := -2.0; m < 2; m += 0.25 {
				if better, worse := score(m, 0.3), score(m+0.25, 0.3); !(better > worse) {
					t.Errorf("mean %v scores %v, mean %v scores %v", m, better, m+0.25, worse)
				}
			}
		})
		t.Run("uncertainty is worth something above the incumbent", func(t *testing.T) {
			for v := 0.01; v < 4; v *= 2 {
				if less, more := score(0.5, v), score(0.5, 2*v); !(more > less) {
					t.Errorf("variance %v scores %v, %v scores %v", v, less, 2*v, more)
				}
			}
		})
		t.Run("extremes", func(t *testing.T) {
			for _, v := range []float64{1e-150, 1e-12, 1, 1e6} {
				for _, m := range []float64{-50, 0, 50} {
					if got := score(m, v); math.IsNaN(got) || math.IsInf(got, 1) {
						t.Errorf("mean %v, variance %v: %v", m, v, got)
					}
				}
			}
		})
	}
}

// slopes compares the gradient with central differences of the value.
func slopes(t *testing.T, a bayes.Acquisition, known *bayes.Known) {
	for _, mean := range []float64{0.2, -0.4, 1.5} {
		at := []float64{mean, 0.3}
		value := func(v []float64) float64 { return a.Value(known, v[0], v[1]) }
		want := fd.Gradient(nil, value, at, &fd.Settings{Formula: fd.Central})
		got, byMean, byVariance := a.Gradient(known, at[0], at[1])
		if !floats.EqualApprox([]float64{byMean, byVariance}, want, 1e-6) || got != value(at) {
			t.Errorf("noise %g, mean %g: gradient %v and %v, by differences %v", known.Noise, mean, byMean, byVariance, want)
		}
	}
}
