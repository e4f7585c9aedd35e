package mixture

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"pgregory.net/rapid"
)

// draw returns an arbitrary mixture.
func draw(t *rapid.T) Distribution {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	n := rapid.IntRange(1, 6).Draw(t, "components")
	var logits, mean, sd []float64
	for range n {
		logits = append(logits, 3*rng.NormFloat64())
		mean = append(mean, rng.NormFloat64())
		sd = append(sd, 0.05+rng.Float64())
	}
	return New(logits, mean, sd)
}

// integral returns that of f times the density from −∞ to y. Pieces of half of the least
// standard deviation make the quadrature exact to rounding.
func (d Distribution) integral(y float64, f func(y float64) float64) float64 {
	low, high, least := math.Inf(1), math.Inf(-1), math.Inf(1)
	for i, m := range d.mean {
		low, high, least = min(low, m-12*d.sd[i]), max(high, m+12*d.sd[i]), min(least, d.sd[i])
	}
	sum := 0.0
	for at := low; at < min(high, y); at += least / 2 {
		end := min(at+least/2, high, y)
		sum += quad.Fixed(func(v float64) float64 { return f(v) * math.Exp(d.LogDensity(v)) }, at, end, 20, nil, 0)
	}
	return sum
}

// Checks each closed form against Gauss-Legendre quadrature of its definition.
func TestAgainstQuadrature(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		y := rapid.Float64Range(-4, 4).Draw(t, "y")
		mean := d.integral(math.Inf(1), func(y float64) float64 { return y })
		for name, c := range map[string]struct{ got, want float64 }{
			"total":    {1, d.integral(math.Inf(1), func(float64) float64 { return 1 })},
			"mean":     {d.Mean(), mean},
			"variance": {d.Variance(), d.integral(math.Inf(1), func(y float64) float64 { return (y - mean) * (y - mean) })},
			"CDF":      {d.CDF(y), d.integral(y, func(float64) float64 { return 1 })},
			"EI":       {math.Exp(d.LogExpectedImprovement(y)), d.integral(y, func(v float64) float64 { return y - v })},
			"PI":       {math.Exp(d.LogProbabilityBelow(y)), d.integral(y, func(float64) float64 { return 1 })},
		} {
			if math.Abs(c.got-c.want) > 1e-9*max(1, math.Abs(c.want)) {
				t.Errorf("%s at %v is %v, by quadrature %v", name, y, c.got, c.want)
			}
		}
		if q := d.CDF(y); q > 1e-6 && q < 1-1e-6 {
			if back := d.CDF(d.Quantile(q)); math.Abs(back-q) > 1e-9 {
				t.Errorf("the quantile of %v is %v, where the CDF is %v", q, d.Quantile(q), back)
			}
		}
	})
}

// Far below all outcomes the improvement underflows, but its logarithm still decreases.
func TestFarTargets(t *testing.T) {
	d := New([]float64{0, 1}, []float64{-1, 0.5}, []float64{0.5, 0.1})
	ei, pi := math.Inf(1), math.Inf(1)
	for _, target := range []float64{-10, -100, -1000} {
		nextEI, nextPI := d.LogExpectedImprovement(target), d.LogProbabilityBelow(target)
		if math.IsInf(nextEI, 0) || math.IsInf(nextPI, 0) || nextEI >= ei || nextPI >= pi {
			t.Errorf("at %v: log EI %v and log PI %v, want finite numbers below %v and %v", target, nextEI, nextPI, ei, pi)
		}
		ei, pi = nextEI, nextPI
	}
}

// For one component, the bound is mean and deviation weighted.
func TestUCBOfNormal(t *testing.T) {
	d := New([]float64{2}, []float64{0.3}, []float64{0.7})
	for _, kappa := range []float64{0, 0.5, 1, 2} {
		if got, want := d.UCB(kappa), -(0.3 - kappa*0.7); math.Abs(got-want) > 1e-12 {
			t.Errorf("kappa %v: %v, want %v", kappa, got, want)
		}
	}
}

// The weights are the softmax of the logits.
func TestComponents(t *testing.T) {
	d := New([]float64{700, 700 + math.Log(3)}, []float64{1, 2}, []float64{0.1, 0.2})
	for i, want := range [][3]float64{{0.25, 1, 0.1}, {0.75, 2, 0.2}} {
		weight, mean, sd := d.Component(i)
		if math.Abs(weight-want[0]) > 1e-12 || mean != want[1] || sd != want[2] {
			t.Errorf("component %d: %v, %v, %v, want %v", i, weight, mean, sd, want)
		}
	}
}
