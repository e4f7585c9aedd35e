package duration

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// weighted returns the moments of a density that is known up to a factor, by a fine sum.
func weighted(density func(f float64) float64) moments {
	var mass, first, second float64
	for f := -20.; f <= 20; f += 1e-3 {
		w := density(f)
		mass, first, second = mass+w, first+w*f, second+w*f*f
	}
	return moments{first / mass, second/mass - first*first/mass/mass}
}

func density(f, mean, variance float64) float64 {
	return math.Exp(-(f - mean) * (f - mean) / variance / 2)
}

// The moments are those of a normal prior times the probability that the noisy time is above the bound.
func TestBeyondIsItsIntegral(t *testing.T) {
	for _, c := range []struct{ low, mean, variance, noise float64 }{
		{0, 0, 1, 0.1}, {1, 0, 1, 0.01}, {3, -1, 0.5, 0.2}, {-4, 1, 2, 0.5}, {6, 0, 1, 0.3},
	} {
		want := weighted(func(f float64) float64 {
			return density(f, c.mean, c.variance) * survival((c.low-f)/math.Sqrt(c.noise))
		})
		got := beyond(c.low, c.mean, c.variance, c.noise)
		if math.Abs(got.mean-want.mean) > 1e-4 || math.Abs(got.variance-want.variance) > 1e-4 {
			t.Errorf("beyond %+v the moments are %+v, want %+v", c, got, want)
		}
	}
	for _, a := range []float64{29.9, 30.1, 1e3, 1e200} {
		if got, least := hazard(a), a; got < least || got > a+1/a {
			t.Errorf("the hazard at %g is %g; it lies between a and a + 1/a", a, got)
		}
	}
}

// The mean beyond a bound is an integral over the density there.
func TestMeanBeyondIsItsIntegral(t *testing.T) {
	for _, c := range []struct{ low, mean, sd float64 }{{0, 0, 1}, {2, 0, 1}, {-5, 1, 2}, {4, -1, 1.5}, {1.5, 1, 0.1}} {
		want := weighted(func(f float64) float64 {
			if f < c.low {
				return 0
			}
			return density(f, c.mean, c.sd*c.sd)
		}).mean
		if got := meanBeyond(c.low, c.mean, c.sd); math.Abs(got-want) > 1e-3 || got < max(c.low, c.mean) {
			t.Errorf("of %+v the mean is %g, want %g", c, got, want)
		}
	}
}

// With one censored observation the posterior has the moments of the true one, which is an integral over the value there.
// With two they are an approximation.
func TestConditionIsBruteForce(t *testing.T) {
	const noise, here = 0.05, 0.62
	k := kernel.NewMatern52(kernel.Continuous(1))
	h := gp.Hyperparameters{Kernel: []float64{math.Log(0.4), 0}, Noise: noise}
	for _, c := range []struct {
		censored [][2]float64 // place and bound
		within   float64
	}{
		{[][2]float64{{0.55, 0.8}}, 2e-3}, {[][2]float64{{0.55, 2}}, 2e-3}, {[][2]float64{{0.9, -1}}, 2e-3},
		{[][2]float64{{0.5, 1}, {0.75, 1.5}}, 2e-2},
	} {
		known := [][2]float64{{0.1, -0.3}, {0.4, 0.5}, {0.95, -0.2}}
		d := &data{x: mat.NewDense(3+len(c.censored), 1, nil), filled: make([]float64, 5)}
		for i, p := range append(known, c.censored...) {
			d.x.Set(i, 0, p[0])
			d.logs, d.censored = append(d.logs, p[1]), append(d.censored, i >= len(known))
		}
		m, err := d.condition(t.Context(), k, h, gp.Scale{SD: 1})
		if err != nil {
			t.Fatal(err)
		}
		mean, variance := m.Posterior(mat.NewDense(1, 1, []float64{here}))
		want := integrated(t, k, h, known, c.censored, here)
		if math.Abs(mean[0]-want.mean) > c.within || math.Abs(variance[0]-want.variance) > c.within {
			t.Errorf("with %v the posterior is %g, %g; want %+v", c.censored, mean[0], variance[0], want)
		}
	}
}

// integrated returns the moments at a place, of the values at the censored places in turn: given all but the last they are
// normal, so the sum over a grid of them is that over normal posteriors with their weights.
func integrated(t *testing.T, k *kernel.Kernel, h gp.Hyperparameters, known, censored [][2]float64, here float64) moments {
	t.Helper()
	var mass, first, second float64
	var visit func(given [][2]float64, left [][2]float64, weight float64)
	visit = func(given, left [][2]float64, weight float64) {
		// Values that were already chosen have no noise.
		x, y, extra := mat.NewDense(len(given), 1, nil), make([]float64, len(given)), make([]float64, len(given))
		for i, p := range given {
			x.Set(i, 0, p[0])
			if y[i] = p[1]; i >= len(known) {
				extra[i] = 1e-9 - h.Noise
			}
		}
		m, err := gp.ConditionEach(k, h, x, y, extra)
		if err != nil {
			t.Fatal(err)
		}
		at := here
		if len(left) > 0 {
			at = left[0][0]
		}
		mean, variance := m.Posterior(mat.NewDense(1, 1, []float64{at}))
		if len(left) == 0 {
			mass, first = mass+weight, first+weight*mean[0]
			second += weight * (variance[0] + mean[0]*mean[0])
			return
		}
		const steps = 120
		sd := math.Sqrt(variance[0])
		for s := range steps {
			f := mean[0] + sd*(-6+12*(float64(s)+0.5)/steps)
			w := density(f, mean[0], variance[0]) * survival((left[0][1]-f)/math.Sqrt(h.Noise))
			if w > 1e-12 {
				visit(append(append([][2]float64{}, given...), [2]float64{at, f}), left[1:], weight*w)
			}
		}
	}
	visit(known, censored, 1)
	return moments{first / mass, second/mass - first*first/mass/mass}
}
