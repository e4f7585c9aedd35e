package transform

import (
	"math"
	"slices"
)

// Kind names the chain of a Transform.
type Kind string

// The kinds of transforms.
const (
	// KindStandard only removes the mean and divides by the sd (after the soft
	// clip, if Fit found outliers).
	KindStandard Kind = "standard"
	// KindBoxCox is Box-Cox of y; scaling y makes no difference to it.
	KindBoxCox Kind = "boxcox"
	// KindYeoJohnson is Yeo-Johnson of y/sd.
	KindYeoJohnson Kind = "yeojohnson"
	// KindCentred is Yeo-Johnson of (y − median)/sd.
	KindCentred Kind = "yeojohnson-centred"
)

// Transform is a fitted output transform: immutable, comparable and safe for concurrent
// use. The zero value is not valid; Fit(nil) maps every outcome to itself.
type Transform struct {
	kind     Kind
	lambda   float64 // of Box-Cox or Yeo-Johnson, in [−5, 2], or to 5 by Paper; 1 for KindStandard
	exponent int     // y is multiplied by 2^-exponent first, exactly, so that no sum overflows
	clip     clip
	// w = (v − centre)/scale and z = (ψ − mean)/sd
	centre, scale float64
	mean, sd      float64
	all, bulk     interval // of outcomes: the ranges of Inverse and of Moments
}

// interval is a range of outcomes, in their own units.
type interval struct{ low, high float64 }

func (i interval) clamp(y float64) float64 { return min(max(y, i.low), i.high) }

// Kind returns the kind of the transform.
func (t Transform) Kind() Kind { return t.kind }

// Apply writes the transformed outcomes of y to dst, which has y's length and may be y
// itself. Over the fitted outcomes they have mean 0 and sd 1 (n−1 degrees of freedom);
// without spread they are 0 up to rounding. Outcomes that were not fitted and lie
// outside a Box-Cox transform's domain count as its end. For finite y the results are
// finite and in the order of y.
func (t Transform) Apply(dst, y []float64) {
	if len(dst) != len(y) {
		panic(panicLength)
	}
	for i, v := range y {
		dst[i] = t.standardised(t.scaled(v))
	}
}

// standardised returns z of a scaled outcome.
func (t Transform) standardised(v float64) float64 {
	s := coordinate(t.kind, t.clip.apply(v), t.centre, t.scale)
	z := (power(t.kind, t.lambda, s) - t.mean) / t.sd
	return min(max(z, -math.MaxFloat64), math.MaxFloat64)
}

// Inverse returns the outcome that Apply maps to z, for any z but NaN. It is clamped to
// the fitted outcomes' range, extended by its width to either side. Beyond that, and
// beyond the transform's own range, the inverse is an extrapolation that soon
// overflows.
func (t Transform) Inverse(z float64) float64 {
	s := powerInverse(t.kind, t.lambda, t.mean+t.sd*z)
	u := t.clip.inverse(fromCoordinate(t.kind, s, t.centre, t.scale))
	return t.all.clamp(math.Ldexp(u, t.exponent))
}

// LogJacobian returns Σ log dz/dy at the outcomes y. It converts a likelihood of
// transformed outcomes to one of the outcomes themselves, which is comparable between
// transforms.
func (t Transform) LogJacobian(y []float64) float64 {
	// Each outcome's share is log(dz/dψ·dψ/dw·dw/dv·dv/dy).
	sum := float64(len(y)) * (-math.Log(t.sd) - math.Log(t.scale) - float64(t.exponent)*math.Ln2)
	for _, v := range y {
		v = t.scaled(v)
		sum += t.clip.logDerivative(v)
		if t.kind != KindStandard {
			sum += (t.lambda - 1) * coordinate(t.kind, t.clip.apply(v), t.centre, t.scale)
		}
	}
	return sum
}

// scaled returns v·2^-exponent, small enough that sums do not overflow.
func (t Transform) scaled(v float64) float64 {
	return min(max(math.Ldexp(v, -t.exponent), -largest), largest)
}

const (
	panicLength = "transform: lengths differ"
	panicFinite = "transform: outcome is not finite"

	// largest and smallest bound the size of outcomes that need no exponent: sums do
	// not overflow, and spreads do not underflow.
	largest, smallest = 0x1p1000, 0x1p-900
)

// scaledAndSorted returns the outcomes in order, multiplied by 2^-exponent. The factor
// is 1 unless they are so large that sums overflow or so small that their spread
// underflows. It panics if an outcome is not finite.
func scaledAndSorted(y []float64) (v []float64, exponent int) {
	v = slices.Clone(y)
	var size float64
	for _, x := range y {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			panic(panicFinite)
		}
		size = max(size, math.Abs(x))
	}
	switch {
	case size > largest: // then they are below 2^984, and nearly 2^40 of them can be added
		exponent = 40
	case size < smallest:
		exponent = -200
	}
	if exponent != 0 {
		for i, x := range v {
			v[i] = math.Ldexp(x, -exponent)
		}
	}
	slices.Sort(v)
	return v, exponent
}
