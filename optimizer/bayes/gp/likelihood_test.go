package gp

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

func TestObjectiveGradientAgainstFiniteDifferences(t *testing.T) {
	const n, d, h = 40, 3, 1e-5
	rng := rand.New(rand.NewPCG(1, 0))
	k := kernel.NewMatern52([]kernel.Column{{}, {Snap: func(v float64) float64 { return math.Round(3*v) / 3 }}, {Categorical: true}})
	x, y := mat.NewDense(n, d, nil), make([]float64, n)
	for i := range n {
		x.SetRow(i, []float64{rng.Float64(), rng.Float64(), float64(rng.IntN(3))})
		y[i] = rng.NormFloat64()
	}
	x = k.Transform(x)
	all := DefaultConfig(d)
	some := DefaultConfig(d)
	some.Kernel[1].Fixed = true
	for name, c := range map[string]struct {
		config Config
		v      []float64
	}{
		"inside":        {all, []float64{-0.5, 0.3, 1, 0.2, -3}},
		"beyond bounds": {all, []float64{-5.2, 7.5, 1, 7.1, -19}},
		"one fixed":     {some, []float64{-0.5, 1, 0.2, -3}},
	} {
		o := newObjective(k, x, y, &c.config)
		grad := make([]float64, len(c.v))
		o.gradient(grad, c.v)
		for p := range c.v {
			up, down := append([]float64(nil), c.v...), append([]float64(nil), c.v...)
			up[p] += h
			down[p] -= h
			want := (o.value(up) - o.value(down)) / (2 * h)
			if math.Abs(grad[p]-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("%s: derivative %d is %v, finite difference %v", name, p, grad[p], want)
			}
		}
	}
}

// Densities, up to a constant, against their definitions with respect to v.
func TestPriors(t *testing.T) {
	normal := LogNormal{Mu: 0.3, Sigma: 0.7}
	gamma := Gamma{Shape: 3, Rate: 6}
	for _, v := range []float64{0.01, 0.2, 1, 3} {
		l := math.Log(v)
		got, _ := normal.LogDensity(l)
		atOne, _ := normal.LogDensity(0)
		want := -math.Log(v) - (l-0.3)*(l-0.3)/(2*0.49) + 0.3*0.3/(2*0.49)
		if math.Abs(got-atOne-want) > 1e-12 {
			t.Errorf("LogNormal at %v: %v, want %v", v, got-atOne, want)
		}
		got, _ = gamma.LogDensity(l)
		atOne, _ = gamma.LogDensity(0)
		if want := 2*math.Log(v) - 6*v + 6; math.Abs(got-atOne-want) > 1e-12 {
			t.Errorf("Gamma at %v: %v, want %v", v, got-atOne, want)
		}
	}
	for name, c := range map[string]struct {
		prior Prior
		mode  float64
	}{
		"LogNormal": {normal, math.Exp(0.3 - 0.49)}, "Gamma": {gamma, 1.0 / 3},
		// By scipy.optimize.minimize_scalar.
		"Softplus": {Softplus{Gamma{Shape: 1e-3, Rate: 10}}, 9.523819116924145e-05},
	} {
		if _, slope := c.prior.LogDensity(math.Log(c.mode)); math.Abs(slope) > 1e-8 {
			t.Errorf("%s: slope %v at its mode", name, slope)
		}
		const h = 1e-6
		for _, at := range []float64{-20, -3, 0.4} {
			up, _ := c.prior.LogDensity(at + h)
			down, _ := c.prior.LogDensity(at - h)
			if _, slope := c.prior.LogDensity(at); math.Abs(slope-(up-down)/(2*h)) > 1e-7*(1+math.Abs(slope)) {
				t.Errorf("%s at %v: slope %v, finite difference %v", name, at, slope, (up-down)/(2*h))
			}
		}
	}
}

// The density that GPy maximises, relative to that at 1, against SciPy 1.17:
// gamma.logpdf(v, shape, scale=1/rate) + log(-expm1(-v)).
func TestSoftplusAgainstSciPy(t *testing.T) {
	for prior, want := range map[Gamma]map[float64]float64{
		{Shape: 1e-3, Rate: 10}: {
			1e-12: 10.431044124260655, 1e-5: 10.447057219926279, 1e-4: 10.448414805431772, 0.2: 8.35873181893823, 3: -20.68990771193507,
		},
		{Shape: 3, Rate: 6}: {
			1e-12: -76.43438820240506, 1e-5: -28.080166249519436, 1e-4: -21.1729959701248, 0.2: 0.33202751954836174, 3: -9.3951694582194,
		},
	} {
		atOne, _ := Softplus{prior}.LogDensity(0)
		for v, relative := range want {
			if got, _ := (Softplus{prior}).LogDensity(math.Log(v)); math.Abs(got-atOne-relative) > 1e-9 {
				t.Errorf("%+v at %v: %v, want %v", prior, v, got-atOne, relative)
			}
		}
	}
	// Where v is 0 or infinite in a float64, the slope is still a number.
	for _, at := range []float64{-800, 800} {
		if _, slope := (Softplus{Gamma{Shape: 1e-3, Rate: 10}}).LogDensity(at); math.IsNaN(slope) {
			t.Errorf("slope %v at %v", slope, at)
		}
	}
}
