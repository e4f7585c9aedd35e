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
	}{"LogNormal": {normal, math.Exp(0.3 - 0.49)}, "Gamma": {gamma, 1.0 / 3}} {
		if _, slope := c.prior.LogDensity(math.Log(c.mode)); math.Abs(slope) > 1e-12 {
			t.Errorf("%s: slope %v at its mode", name, slope)
		}
		const h = 1e-6
		up, _ := c.prior.LogDensity(0.4 + h)
		down, _ := c.prior.LogDensity(0.4 - h)
		if _, slope := c.prior.LogDensity(0.4); math.Abs(slope-(up-down)/(2*h)) > 1e-7 {
			t.Errorf("%s: slope %v, finite difference %v", name, slope, (up-down)/(2*h))
		}
	}
}
