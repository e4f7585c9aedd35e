package transform_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/transform"
)

// sample returns n draws of f, which is given standard normal numbers.
func sample(n int, seed uint64, f func(z float64) float64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	y := make([]float64, n)
	for i := range y {
		y[i] = f(rng.NormFloat64())
	}
	return y
}

func apply(t transform.Transform, y []float64) []float64 {
	z := make([]float64, len(y))
	t.Apply(z, y)
	return z
}

func identity(z float64) float64 { return z }

func TestKindFollowsTheShapeOfTheOutcomes(t *testing.T) {
	tests := []struct {
		name           string
		y              []float64
		kind           transform.Kind
		lambda, within float64
	}{
		// The logarithm of a lognormal is normal.
		{"lognormal", sample(400, 1, func(z float64) float64 { return 100 * math.Exp(2*z) }), transform.KindBoxCox, 0, 0.1},
		{"one", []float64{7}, transform.KindStandard, 1, 0},
		{"equal", []float64{7, 7, 7, 7, 7}, transform.KindStandard, 1, 0},
		{"two distinct", []float64{1, 2, 1, 1, 2, 2}, transform.KindStandard, 1, 0},
		{"none", nil, transform.KindStandard, 1, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fitted := transform.Fit(test.y)
			if fitted.Kind() != test.kind || math.Abs(fitted.Lambda()-test.lambda) > test.within {
				t.Errorf("%s with λ = %g, want %s with %g", fitted.Kind(), fitted.Lambda(), test.kind, test.lambda)
			}
		})
	}
}

// outcomes draws samples of many shapes: skewed, shifted, scaled, with ties and
// outliers.
func outcomes(t *rapid.T) []float64 {
	n := rapid.IntRange(2, 40).Draw(t, "n")
	scale := math.Pow(10, rapid.Float64Range(-250, 250).Draw(t, "scale"))
	shift := rapid.SampledFrom([]float64{0, 0, -3, 5, 100}).Draw(t, "shift")
	shape := rapid.SampledFrom([]string{"normal", "skewed", "ties", "outlier", "low outlier"}).Draw(t, "shape")
	y := make([]float64, n)
	for i := range y {
		v := rapid.Float64Range(-3, 3).Draw(t, "v")
		switch shape {
		case "skewed":
			v = math.Exp(3 * v)
		case "ties":
			v = math.Round(v)
		}
		y[i] = (v + shift) * scale
	}
	switch shape {
	case "outlier":
		y[0] = 1e12 * scale
	case "low outlier":
		y[0] = -1e12 * scale
	}
	return y
}

func TestFittedOutcomesAreStandardised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y := outcomes(t)
		for _, fitted := range []transform.Transform{transform.Fit(y), transform.Standard(y)} {
			mean, sd := stat.MeanStdDev(apply(fitted, y), nil)
			if low, high := slices.Min(y), slices.Max(y); high-low < 1e-12*max(math.Abs(low), math.Abs(high)) || low == high {
				sd = 1 // no spread except rounding
			}
			if !(math.Abs(mean) < 1e-6) || !(math.Abs(sd-1) < 1e-6) {
				t.Fatalf("%s of %v: mean %g, sd %g, want 0 and 1", fitted.Kind(), y, mean, sd)
			}
		}
	})
}

// Outcomes that differ only in their last digits are standardised, too: the rounding of
// their centre is as large as a part of their spread.
func TestNarrowOutcomesAreStandardised(t *testing.T) {
	jitter := func(digits float64) []float64 {
		return sample(21, 3, func(z float64) float64 { return 10 + digits*z })
	}
	for name, y := range map[string][]float64{
		"narrow":   jitter(1e-10),
		"narrower": jitter(1e-12),
		"outliers": append(jitter(1e-7), 200, 201, 0.5),
	} {
		for _, fitted := range []transform.Transform{transform.Fit(y), transform.Plain(y), transform.Standard(y)} {
			mean, sd := stat.MeanStdDev(apply(fitted, y), nil)
			if !(math.Abs(mean) < 1e-9) || !(math.Abs(sd-1) < 1e-6) {
				t.Errorf("%s: %s, clipped %v: mean %g, sd %g, want 0 and 1", name, fitted.Kind(), fitted.Clipped(), mean, sd)
			}
		}
	}
}

// Outcomes away from a plateau are not outliers just because the plateau's outcomes
// differ in their last digits.
func TestRoundingMakesNoOutliers(t *testing.T) {
	y := sample(21, 3, func(z float64) float64 { return 10 + 1e-14*z })
	y = append(y, 9, 10.5, 11, 12, 13)
	if fitted := transform.Fit(y); fitted.Clipped() {
		t.Errorf("%s is clipped, so that 10.5 and 13 become %v", fitted.Kind(), apply(fitted, []float64{10.5, 13}))
	}
}

func TestOrderIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y := outcomes(t)
		fitted := transform.Fit(y)
		extent := slices.Max(y)/2 - slices.Min(y)/2
		at := slices.Clone(y) // the outcomes and others around them
		for i := range 20 {
			at = append(at, slices.Min(y)+extent*(0.2*float64(i)-1))
		}
		slices.Sort(at)
		z := apply(fitted, at)
		for i := 1; i < len(z); i++ {
			if slack := 1e-10 * max(1, math.Abs(z[i])); !(z[i] >= z[i-1]-slack) {
				t.Fatalf("%s, λ=%g: z(%g) = %v is above z(%g) = %v", fitted.Kind(), fitted.Lambda(), at[i-1], z[i-1], at[i], z[i])
			}
		}
		for z := -8.0; z < 8; z += 0.25 {
			if a, b := fitted.Inverse(z), fitted.Inverse(z+0.25); !(a <= b) {
				t.Fatalf("Inverse(%g) = %g is above Inverse(%g) = %g", z, a, z+0.25, b)
			}
		}
	})
}

func TestInverseUndoesApply(t *testing.T) {
	shapes := map[string]func(float64) float64{
		"normal": identity, "lognormal": math.Exp, "left": func(z float64) float64 { return -math.Exp(z) },
		"cube": func(z float64) float64 { return z * z * z }, "cauchy": func(z float64) float64 { return math.Tan(1.5 * math.Erf(z)) },
	}
	for name, shape := range shapes {
		for _, fit := range []func([]float64) transform.Transform{transform.Fit, transform.Standard} {
			y := sample(50, 3, shape)
			fitted := fit(y)
			low, high := slices.Min(y), slices.Max(y)
			for i := range 101 {
				v := low + float64(i)/100*(high-low)
				got := fitted.Inverse(apply(fitted, []float64{v})[0])
				if !(math.Abs(got-v) <= 1e-9*(high-low)) {
					t.Errorf("%s, %s, λ=%g: %g came back as %g", name, fitted.Kind(), fitted.Lambda(), v, got)
				}
			}
		}
	}
}

func TestInverseIsClampedToOneRangeAround(t *testing.T) {
	y := sample(30, 4, math.Exp)
	low, high := slices.Min(y), slices.Max(y)
	for _, fitted := range []transform.Transform{transform.Fit(y), transform.Standard(y)} {
		for _, z := range []float64{-1e300, 1e300, math.Inf(-1), math.Inf(1), 0} {
			if v := fitted.Inverse(z); !(v >= 2*low-high && v <= 2*high-low) {
				t.Errorf("%s: Inverse(%g) = %g is outside [%g, %g]", fitted.Kind(), z, v, 2*low-high, 2*high-low)
			}
		}
	}
}

func TestLogJacobianAgainstFiniteDifferences(t *testing.T) {
	tests := map[string][]float64{
		"boxcox":      sample(60, 5, func(z float64) float64 { return math.Exp(2 * z) }),
		"yeojohnson":  sample(60, 6, func(z float64) float64 { return math.Sinh(1.5*z + 0.5) }),
		"left":        sample(60, 7, func(z float64) float64 { return 3 - math.Exp(z) }),
		"outlier":     append(sample(40, 8, identity), 1e6),
		"low outlier": append(sample(40, 9, identity), -1e6),
		"large":       sample(40, 10, func(z float64) float64 { return 1e304 * math.Exp(z) }),
		"small":       sample(40, 11, func(z float64) float64 { return 1e-290 * math.Exp(z) }),
	}
	for name, y := range tests {
		for _, fitted := range []transform.Transform{transform.Fit(y), transform.Standard(y)} {
			for _, v := range y {
				h := 1e-5 * math.Abs(v)
				z := apply(fitted, []float64{v - h, v + h})
				want := math.Log(z[1]-z[0]) - math.Log(2*h)
				if z[1]-z[0] < 1e-8 {
					continue // too flat for a difference
				}
				if got := fitted.LogJacobian([]float64{v}); !(math.Abs(got-want) < 1e-4) {
					t.Errorf("%s, %s, λ=%g: log dz/dy at %g is %g, differences have %g", name, fitted.Kind(), fitted.Lambda(), v, got, want)
				}
			}
		}
	}
}

// The z of all transforms have the same Σz² = n − 1, so their likelihoods differ only
// by their Jacobians.
func TestFitIsTheMostLikely(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y := outcomes(t)
		best := transform.Fit(y)
		if best.Clipped() {
			return // for the sake of the rest, perhaps
		}
		fitted, plain := best.LogJacobian(y), transform.Standard(y).LogJacobian(y)
		if !(fitted >= plain-1e-6*max(1, math.Abs(plain))) {
			t.Fatalf("fitted: %v, standardised: %v", fitted, plain)
		}
	})
}

func TestFactorMakesNoDifference(t *testing.T) {
	for seed := range uint64(20) {
		y := sample(30, seed, func(z float64) float64 { return math.Sinh(z) + float64(seed%5) })
		want := apply(transform.Fit(y), y)
		for _, factor := range []float64{1e-290, 1e-3, 7, 1e12, 1e290} {
			scaled := slices.Clone(y)
			for i := range scaled {
				scaled[i] *= factor
			}
			for i, z := range apply(transform.Fit(scaled), scaled) {
				if !(math.Abs(z-want[i]) < 1e-5) {
					t.Errorf("seed %d: z of outcome %d is %g, multiplied by %g it is %g", seed, i, want[i], factor, z)
				}
			}
		}
	}
}

// Far from 0, the chains that depend on the origin are nearly linear, which leaves the
// centred one. Elsewhere they win only by being more likely.
func TestShiftLosesNothing(t *testing.T) {
	for seed := range uint64(20) {
		shifted := func(by float64) ([]float64, transform.Transform) {
			y := sample(30, seed, func(z float64) float64 { return math.Sinh(z) + by })
			return y, transform.Fit(y)
		}
		far, base := shifted(1e6)
		for _, shift := range []float64{-1e6, -20, 0, 3, 100} {
			y, fitted := shifted(shift)
			if gain := fitted.LogJacobian(y) - base.LogJacobian(far); gain < -1e-3 {
				t.Errorf("seed %d, shift %g: %s is %g less likely than %s", seed, shift, fitted.Kind(), -gain, base.Kind())
			}
			if fitted.Kind() != transform.KindCentred || base.Kind() != transform.KindCentred {
				continue
			}
			want, got := apply(base, far), apply(fitted, y)
			for i := range got {
				if math.Abs(got[i]-want[i]) > 1e-5 {
					t.Errorf("seed %d, shift %g: z of outcome %d is %g, want %g", seed, shift, i, got[i], want[i])
				}
			}
		}
	}
}

func TestOrderOfOutcomesMakesNoDifference(t *testing.T) {
	y := sample(50, 12, math.Exp)
	want := transform.Fit(y)
	slices.Reverse(y)
	if got := transform.Fit(y); got != want {
		t.Errorf("reversed: %+v, want %+v", got, want)
	}
}

func TestOutlierLeavesTheRestItsResolution(t *testing.T) {
	for _, n := range []int{5, 10, 30, 100} {
		for _, offset := range []float64{0, 50} {
			for _, outlier := range []float64{1e3, 1e12, 1e300, -1e3, -1e12, -1e300} {
				rest := sample(n-1, 13, func(z float64) float64 { return z + offset })
				y := append(rest, outlier)
				fitted := transform.Fit(y)
				z := apply(fitted, y)
				if _, sd := stat.MeanStdDev(z[:n-1], nil); !(sd > 0.2) {
					t.Errorf("%d outcomes around %g and %g: the rest has sd %.3g (%s, λ=%.3g)", n, offset, outlier, sd, fitted.Kind(), fitted.Lambda())
				}
				if at := slices.Index(z, slices.Min(z)); outlier < 0 && at != n-1 {
					t.Errorf("%d outcomes around %g: the lowest, %g, is none any more", n, offset, outlier)
				}
			}
		}
	}
}

// If most outcomes lie on a plateau of bad ones, the good ones are not outliers: they
// keep their distances from it and from each other.
func TestPlateauLeavesTheGoodTheirResolution(t *testing.T) {
	y := sample(32, 14, func(z float64) float64 { return 0.9 + 1e-7*z })
	y = append(y, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
	z := apply(transform.Fit(y), y)
	good := z[32:]
	for i := 1; i < len(good); i++ {
		if !(good[i]-good[i-1] > 0.1) {
			t.Errorf("z of %g and %g are %g and %g", y[31+i], y[32+i], good[i-1], good[i])
		}
	}
}

func FuzzFitNeverYieldsNaN(f *testing.F) {
	seed := func(y ...float64) {
		var data []byte
		for _, v := range y {
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
		}
		f.Add(data)
	}
	seed()
	seed(3)
	seed(1, 1, 1, 1, 1)
	seed(0, 0, 1e300, -1e300, 1e-300)
	seed(1e300, 2e300, 3e300, 5e300, 8e300, -1e308, 1e308)
	seed(math.MaxFloat64, -math.MaxFloat64, 1, 2, 3, 4)
	seed(1e-300, 2e-300, 3e-300, 5e-300, 1e12)
	seed(5e-324, 1e-323, 2e-323, 5e-323, 1e-322)
	seed(1, 2, 3, 4, 5, 1e12)
	seed(1e-300, 1, 1e300, 1e100, 1e-100)
	seed(1, 1+1e-16, 1+2e-15, 1+1e-14, 1+1e-13)
	f.Fuzz(func(t *testing.T, data []byte) {
		var y []float64
		for ; len(data) >= 8 && len(y) < 64; data = data[8:] {
			if v := math.Float64frombits(binary.LittleEndian.Uint64(data)); !math.IsNaN(v) && !math.IsInf(v, 0) {
				y = append(y, v)
			}
		}
		for _, fitted := range []transform.Transform{transform.Fit(y), transform.Standard(y)} {
			checkFinite(t, fitted, y)
		}
	})
}

// checkFinite calls every method with the outcomes and with extreme arguments.
func checkFinite(t *testing.T, fitted transform.Transform, y []float64) {
	t.Helper()
	finite := func(what string, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("%s of %v, %s with λ = %g: %v", what, y, fitted.Kind(), fitted.Lambda(), v)
		}
	}
	extreme := []float64{0, 1, -1, 1e300, -1e300, 1e-300, 5e-324, math.MaxFloat64, -math.MaxFloat64}
	for _, z := range append(apply(fitted, y), apply(fitted, extreme)...) {
		finite("z", z)
	}
	finite("LogJacobian", fitted.LogJacobian(y))
	finite("Lambda", fitted.Lambda())
	for _, z := range append(extreme, math.Inf(1), math.Inf(-1)) {
		finite("Inverse", fitted.Inverse(z))
		for _, sd := range []float64{0, 1e-300, 1, 1e300} {
			m, s := fitted.Moments(z, sd)
			finite("mean", m)
			finite("sd", s)
			if s < 0 {
				t.Errorf("Moments(%g, %g) of %v: sd %g", z, sd, y, s)
			}
		}
	}
}

func BenchmarkFit(b *testing.B) {
	for _, n := range []int{20, 120, 1000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			y := sample(n, 30, func(z float64) float64 { return 5 + math.Exp(z) })
			for b.Loop() {
				transform.Fit(y)
			}
		})
	}
}
