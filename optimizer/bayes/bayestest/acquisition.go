package bayestest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
)

// Acquisition tests an implementation, with noise and without.
func Acquisition(t *testing.T, a bayes.Acquisition) {
	for _, noise := range []float64{0, 0.2} {
		known := func(draws int) *bayes.Known {
			return &bayes.Known{Incumbents: []float64{-0.1, -0.6, 0.2}[:draws], Noise: noise}
		}
		score := func(mean []float64, variance float64) float64 {
			return a.Value(known(len(mean)), mean, variance)
		}
		t.Run("gradient", func(t *testing.T) { slopes(t, a, known(3)) })
		t.Run("a lower mean is better", func(t *testing.T) {
			for m := -2.0; m < 2; m += 0.25 {
				if better, worse := score([]float64{m}, 0.3), score([]float64{m + 0.25}, 0.3); !(better > worse) {
					t.Errorf("mean %v scores %v, mean %v scores %v", m, better, m+0.25, worse)
				}
			}
		})
		t.Run("uncertainty is worth something above the incumbent", func(t *testing.T) {
			for v := 0.01; v < 4; v *= 2 {
				if less, more := score([]float64{0.5}, v), score([]float64{0.5}, 2*v); !(more > less) {
					t.Errorf("variance %v scores %v, %v scores %v", v, less, 2*v, more)
				}
			}
		})
		t.Run("draws", func(t *testing.T) { overDraws(t, a, noise) })
		t.Run("extremes", func(t *testing.T) {
			for _, v := range []float64{1e-150, 1e-12, 1, 1e6} {
				for _, m := range []float64{-50, 0, 50} {
					if got := score([]float64{m}, v); math.IsNaN(got) || math.IsInf(got, 1) {
						t.Errorf("mean %v, variance %v: %v", m, v, got)
					}
				}
			}
		})
	}
}

// slopes compares the gradient with central differences of the value.
func slopes(t *testing.T, a bayes.Acquisition, known *bayes.Known) {
	mean, variance := []float64{0.2, -0.4, 1.5}, 0.3
	value := func(v []float64) float64 { return a.Value(known, v[:3], v[3]) }
	want := fd.Gradient(nil, value, slices.Concat(mean, []float64{variance}), &fd.Settings{Formula: fd.Central})
	got := make([]float64, 4)
	at, byVariance := a.Gradient(known, got[:3], mean, variance)
	got[3] = byVariance
	if !floats.EqualApprox(got, want, 1e-6) || at != a.Value(known, mean, variance) {
		t.Errorf("noise %g: gradient %v, by differences %v", known.Noise, got, want)
	}
}

// overDraws holds that equal draws count as one, and that their order does not matter.
func overDraws(t *testing.T, a bayes.Acquisition, noise float64) {
	one := a.Value(&bayes.Known{Incumbents: []float64{-0.1}, Noise: noise}, []float64{0.2}, 0.3)
	three := a.Value(&bayes.Known{Incumbents: []float64{-0.1, -0.1, -0.1}, Noise: noise}, []float64{0.2, 0.2, 0.2}, 0.3)
	if math.Abs(one-three) > 1e-12 {
		t.Errorf("one draw scores %v, three equal ones %v", one, three)
	}
	means, incumbents := []float64{0.3, -0.2, 0.9}, []float64{-0.1, 0, 0.4}
	want := a.Value(&bayes.Known{Incumbents: incumbents, Noise: noise}, means, 0.3)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		m, i := make([]float64, 3), make([]float64, 3)
		for to, from := range rng.Perm(3) {
			m[to], i[to] = means[from], incumbents[from]
		}
		if got := a.Value(&bayes.Known{Incumbents: i, Noise: noise}, m, 0.3); math.Abs(got-want) > 1e-12 {
			t.Errorf("draws in another order score %v, want %v", got, want)
		}
	}
}
