package riemann

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

// draw returns an arbitrary distribution.
func draw(t *rapid.T) Distribution {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	borders := make([]float64, rapid.IntRange(2, 12).Draw(t, "borders"))
	at := -1.5
	for i := range borders {
		at += 0.05 + rng.ExpFloat64()/3
		borders[i] = at
	}
	b, err := New(borders, 0.1+rng.Float64(), 0.1+rng.Float64())
	if err != nil {
		t.Fatal(err)
	}
	logits := make([]float64, b.Len())
	for i := range logits {
		logits[i] = 3 * rng.NormFloat64()
	}
	return b.Of(logits)
}

// integral returns that of f times the density from −∞ to y, piece by piece.
func (d Distribution) integral(y float64, f func(y float64) float64) float64 {
	ends := []float64{d.borders[0] - 12*d.low}
	ends = append(append(ends, d.borders...), d.borders[len(d.borders)-1]+12*d.high)
	sum := 0.0
	for i := range len(ends) - 1 {
		low, high := ends[i], min(ends[i+1], y)
		if high <= low {
			continue
		}
		// Within a piece, so that rounding at its ends cannot leave it.
		inside := func(v float64) float64 { return min(max(v, math.Nextafter(low, high)), ends[i+1]) }
		sum += quad.Fixed(func(v float64) float64 { return f(v) * math.Exp(d.LogDensity(inside(v))) }, low, high, 400, nil, 0)
	}
	return sum
}

// Checks each closed form against Gauss-Legendre quadrature of its definition.
func TestAgainstQuadrature(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		y := rapid.Float64Range(d.borders[0]-3*d.low, d.borders[len(d.borders)-1]+3*d.high).Draw(t, "y")
		mean := d.integral(math.Inf(1), func(y float64) float64 { return y })
		for name, c := range map[string]struct{ got, want float64 }{
			"total":    {1, d.integral(math.Inf(1), func(float64) float64 { return 1 })},
			"mean":     {d.Mean(), mean},
			"variance": {d.Variance(), d.integral(math.Inf(1), func(y float64) float64 { return (y - mean) * (y - mean) })},
			"CDF":      {d.CDF(y), d.integral(y, func(float64) float64 { return 1 })},
			"EI":       {math.Exp(d.LogEI(y)), d.integral(y, func(v float64) float64 { return y - v })},
			"PI":       {math.Exp(d.LogPI(y)), d.integral(y, func(float64) float64 { return 1 })},
		} {
			if math.Abs(c.got-c.want) > 1e-9*max(1, math.Abs(c.want)) {
				t.Errorf("%s at %v is %v, by quadrature %v", name, y, c.got, c.want)
			}
		}
		if q := d.CDF(y); q > 1e-9 && q < 1-1e-9 {
			if back := d.CDF(d.Quantile(q)); math.Abs(back-q) > 1e-9 {
				t.Errorf("the quantile of %v is %v, where the CDF is %v", q, d.Quantile(q), back)
			}
		}
	})
}

// Far below all outcomes the improvement underflows, but its logarithm still decreases.
func TestFarTargets(t *testing.T) {
	b, err := New([]float64{-1, 0, 1}, 0.5, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	d := b.Of([]float64{0, 1, 1, 0})
	ei, pi := math.Inf(1), math.Inf(1)
	for _, target := range []float64{-10, -100, -1000} {
		nextEI, nextPI := d.LogEI(target), d.LogPI(target)
		if math.IsInf(nextEI, 0) || math.IsInf(nextPI, 0) || nextEI >= ei || nextPI >= pi {
			t.Errorf("at %v: log EI %v and log PI %v, want finite numbers below %v and %v", target, nextEI, nextPI, ei, pi)
		}
		ei, pi = nextEI, nextPI
	}
}

// For buckets that follow a normal density, the bound is mean and deviation weighted.
func TestUCBOfNormal(t *testing.T) {
	const mean, sd = 0.3, 0.7
	normal := distuv.Normal{Mu: mean, Sigma: sd}
	var borders []float64
	for q := 0.001; q < 0.9995; q += 0.001 {
		borders = append(borders, normal.Quantile(q))
	}
	b, err := New(borders, 0.1, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	d := b.Of(make([]float64, b.Len()))
	for _, kappa := range []float64{0, 0.5, 1, 2} {
		if got, want := d.UCB(kappa), -(mean - kappa*sd); math.Abs(got-want) > 1e-3 {
			t.Errorf("kappa %v: %v, want %v", kappa, got, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		borders   []float64
		low, high float64
		want      string
	}{
		{[]float64{1}, 1, 1, "1 borders between buckets, want 2 to 4095"},
		{[]float64{1, 1}, 1, 1, "border 2 between buckets is 1, want finite numbers that ascend"},
		{[]float64{math.NaN(), 1}, 1, 1, "border 1 between buckets is NaN, want finite numbers that ascend"},
		{[]float64{0, 1}, 0, 1, "standard deviations of the tails must be positive and finite"},
		{[]float64{0, 1}, 1, math.Inf(1), "standard deviations of the tails must be positive and finite"},
	} {
		if _, err := New(c.borders, c.low, c.high); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %q", c, err, c.want)
		}
	}
}
