package transform_test

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/transform"
)

// beyond draws outcomes, and a bound and a width within their size.
func beyond(t *rapid.T) (y []float64, high, width float64) {
	y = outcomes(t)
	size := slices.Max(y)/2 - slices.Min(y)/2
	high = slices.Min(y) + size*rapid.Float64Range(-1, 2.5).Draw(t, "high")
	return y, high, size * math.Pow(10, rapid.Float64Range(-6, 1).Draw(t, "width"))
}

// With the bound 1 and the width 1, outcomes v above 1 become 1 + log v. The slope follows.
func TestBeyondIsALogarithm(t *testing.T) {
	y := []float64{-40, 0.25, 0.5, 1, math.E, math.E * math.E, 1e200}
	u := []float64{-40, 0.25, 0.5, 1, 2, 3, 1 + 200*math.Ln10}
	mean, sd := stat.MeanStdDev(u, nil)
	fitted := transform.Beyond(y, 1, 1)
	for i, z := range apply(fitted, y) {
		if want := (u[i] - mean) / sd; math.Abs(z-want) > 1e-12 {
			t.Errorf("z(%g) = %v, want %v", y[i], z, want)
		}
		if got, want := fitted.LogJacobian(y[i:i+1]), -math.Log(sd)-math.Log(max(1, y[i])); math.Abs(got-want) > 1e-9 {
			t.Errorf("log dz/dy at %g is %v, want %v", y[i], got, want)
		}
	}
}

// Up to the bound the outcomes are only shifted and scaled, beyond it distances shrink and the
// order is kept.
func TestBeyondKeepsWhatLiesWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y, high, width := beyond(t)
		fitted := transform.Beyond(y, high, width)
		low := high - 3*width
		// Points whose distances are not lost in the rounding of their size.
		at := []float64{low, high - 2*width, high - width, high, high + width, high + 3*width, high + 1e3*width}
		if width < 1e-6*max(math.Abs(high), slices.Max(y)/2-slices.Min(y)/2) || width == 0 {
			return
		}
		z := apply(fitted, at)
		unit := z[1] - z[0]
		for i := 1; i < len(z); i++ {
			want := unit * (at[i] - at[i-1]) / width
			switch d := z[i] - z[i-1]; {
			case !(d > 0):
				t.Fatalf("z falls from %g to %g, between %g and %g", z[i-1], z[i], at[i-1], at[i])
			case at[i] <= high && math.Abs(d-want) > 1e-6*want:
				t.Fatalf("a distance of %g is %g, want %g", at[i]-at[i-1], d, want)
			case d > want*(1+1e-6):
				t.Fatalf("beyond %g a distance grows from %g to %g", high, want, d)
			}
		}
	})
}

// The transform and its slope are continuous at the bound.
func TestBeyondHasNoKink(t *testing.T) {
	y := sample(50, 40, func(z float64) float64 { return math.Exp(3 * z) })
	for _, high := range []float64{0.1, 1, 30} {
		fitted := transform.Beyond(y, high, 0.5)
		const h = 1e-6
		z := apply(fitted, []float64{high - h, high, high + h})
		before, after := (z[1]-z[0])/h, (z[2]-z[1])/h
		if math.Abs(before-after) > 1e-4*before {
			t.Errorf("the slope at %g is %g on the left and %g on the right", high, before, after)
		}
	}
}

func TestBeyondIsUndone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y, high, width := beyond(t)
		fitted := transform.Beyond(y, high, width)
		size := slices.Max(y)/2 - slices.Min(y)/2
		for i, z := range apply(fitted, y) {
			if got := fitted.Inverse(z); !(math.Abs(got/2-y[i]/2) <= 1e-6*size+1e-12*math.Abs(y[i])) {
				t.Fatalf("%g came back as %g", y[i], got)
			}
		}
	})
}

// Nothing is squeezed without outcomes beyond the bound, or without a width.
func TestBeyondMaySqueezeNothing(t *testing.T) {
	y := sample(30, 41, func(z float64) float64 { return math.Exp(2 * z) })
	want := transform.Standard(y)
	for _, c := range [][2]float64{{slices.Max(y), 1}, {1, 0}, {1, -1}, {1, 1e-12}} {
		if got := transform.Beyond(y, c[0], c[1]); got != want {
			t.Errorf("beyond %g with width %g: %+v, want %+v", c[0], c[1], got, want)
		}
	}
	if transform.Beyond(y, 1, 1) == want {
		t.Error("outcomes beyond 1 are not squeezed")
	}
}

// An outcome whose transform is normal is lognormal beyond the bound: the moments of the
// lognormal distribution are known.
func TestMomentsBeyond(t *testing.T) {
	y := sample(200, 42, func(z float64) float64 { return math.Exp(3 * z) })
	const high, width = 0.5, 0.25
	fitted := transform.Beyond(y, high, width)
	z := apply(fitted, []float64{high, high + (math.E-1)*width}) // u differs by one width
	unit := z[1] - z[0]
	for _, c := range []struct{ mu, sigma float64 }{{2, 0.1}, {3, 0.3}} {
		m, s := fitted.Moments(z[0]+c.mu*unit, c.sigma*unit)
		lognormal := math.Exp(c.mu + c.sigma*c.sigma/2)
		mean, sd := high+width*(lognormal-1), width*lognormal*math.Sqrt(math.Expm1(c.sigma*c.sigma))
		if math.Abs(m-mean) > 1e-6*mean || math.Abs(s-sd) > 1e-4*sd {
			t.Errorf("N(%g, %g²): mean %g and sd %g, want %g and %g", c.mu, c.sigma, m, s, mean, sd)
		}
	}
}

func TestBeyondStaysFinite(t *testing.T) {
	for _, y := range [][]float64{
		nil, {3}, {1, 1, 1}, {0, 0, 1e300, -1e300, 1e-300}, {math.MaxFloat64, -math.MaxFloat64, 1, 2, 3}, {5e-324, 1e-323, 1e12},
		{1e-300, 2e-300, 1e-290},
	} {
		for _, high := range []float64{0, 1, -1e300, 1e300, 1e-300, math.MaxFloat64} {
			for _, width := range []float64{1, 1e-300, 1e300, math.MaxFloat64} {
				checkFinite(t, transform.Beyond(y, high, width), y)
			}
		}
	}
}
