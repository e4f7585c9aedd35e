package transform

import "math"

// Beyond returns the transform that leaves the outcomes up to high as they are, also outlying
// ones, lets the others grow like the logarithm of their distance from there in widths, and
// standardises all of them. The outcomes y, high and width MUST be finite. Nothing is squeezed
// where the width is not positive or only rounding, or where it or high is too large for sums.
//
// Here v is an outcome above high, and u what it becomes:
//
//	u = high + width·log(1 + (v − high)/width)
//
// The slope is 1 at high, so that the transform has no kink, and halves within one width.
func Beyond(y []float64, high, width float64) Transform {
	sorted, exponent := scaledAndSorted(y)
	c := clip{
		on: true, slow: true, low: math.Inf(-1), high: math.Ldexp(high, -exponent), width: math.Ldexp(width, -exponent),
	}
	negligible := !(c.width > max(minSpread*math.Abs(c.high), leastWidth))
	if n := len(sorted); n == 0 || sorted[n-1] <= c.high || negligible || math.Abs(c.high)+c.width > largest {
		c = clip{}
	}
	t := standard(squeezed(sorted, c), exponent, c)
	t.all = t.extended(sorted)
	t.bulk = t.all // what is squeezed is expected, unlike an outlier
	return t
}
