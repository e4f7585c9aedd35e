package transform

import "math"

const (
	// minOutcomes is how many outcomes are needed to detect an outlier.
	minOutcomes = 5
	// bulkShare is the part of the outcomes, from the lowest, that may be low
	// outliers.
	bulkShare = 20
	// reach is how many widths away from the bulk an outlier starts. Three half
	// ranges above the median is beyond 4 sd of a normal distribution.
	reach = 3
	// leastWidth is the smallest width whose rounding is still negligible.
	leastWidth = 0x1p-960
	// depth is how many widths at most a low outlier is put below the others.
	depth = 3
)

// clip squeezes outcomes above high and below low smoothly, keeping their order. It
// leaves outcomes between the two alone. The zero value squeezes nothing.
type clip struct {
	on               bool
	low, high, width float64
	// slow lets outcomes above high grow like their logarithm, without an end.
	slow bool
}

// fences returns the clip of sorted outcomes; it is off if none is an outlier.
func fences(sorted []float64) clip {
	n := len(sorted)
	if n < minOutcomes {
		return clip{}
	}
	middle := median(sorted)
	least := sorted[max(n/bulkShare, 1)]
	width := middle - least
	if width <= 0 { // at least half of the outcomes equal the lowest one
		width = typicalDistance(sorted, middle)
	}
	c := clip{on: true, low: least - reach*width, high: middle + reach*width, width: width}
	if !(width > max(minSpread*max(math.Abs(least), math.Abs(middle)), leastWidth)) || sorted[0] >= c.low && sorted[n-1] <= c.high {
		return clip{}
	}
	return c
}

// typicalDistance returns the lower median distance of the outcomes above the given
// one, or 0 if there are none.
func typicalDistance(sorted []float64, from float64) float64 {
	for i, v := range sorted {
		if v > from {
			return sorted[i+(len(sorted)-1-i)/2] - from
		}
	}
	return 0
}

// median returns the median of one or more sorted numbers.
func median(sorted []float64) float64 {
	n := len(sorted)
	return sorted[(n-1)/2]/2 + sorted[n/2]/2
}

// apply returns the squeezed outcome.
func (c clip) apply(v float64) float64 {
	switch {
	case c.on && v > c.high && c.slow:
		return c.high + c.width*logRatio(v-c.high, c.width)
	case c.on && v > c.high:
		return c.high + c.width*(1-1/(1+(v-c.high)/c.width))
	case c.on && v < c.low:
		l := logRatio(c.low-v, c.width)
		return c.low - c.width*depth*(l/(depth+l))
	}
	return v
}

// inverse returns the outcome of a squeezed one, infinite outside the range.
func (c clip) inverse(u float64) float64 {
	switch {
	case c.on && u > c.high && c.slow:
		return c.high + c.width*math.Expm1((u-c.high)/c.width)
	case c.on && u > c.high:
		part := (u - c.high) / c.width
		if part >= 1 {
			return math.Inf(1)
		}
		return c.high + c.width*(part/(1-part))
	case c.on && u < c.low:
		part := (c.low - u) / (c.width * depth)
		if part >= 1 {
			return math.Inf(-1)
		}
		return c.low - c.width*math.Expm1(depth*part/(1-part))
	}
	return u
}

// logDerivative returns log d apply(v)/dv.
func (c clip) logDerivative(v float64) float64 {
	switch {
	case c.on && v > c.high && c.slow:
		return -logRatio(v-c.high, c.width)
	case c.on && v > c.high:
		return -2 * logRatio(v-c.high, c.width)
	case c.on && v < c.low:
		l := logRatio(c.low-v, c.width)
		return -l - 2*math.Log1p(l/depth)
	}
	return 0
}

// logRatio returns log(1 + distance/width), even if the ratio overflows. From 1e17 on, 1 is less than
// half a unit in the last place.
func logRatio(distance, width float64) float64 {
	if ratio := distance / width; ratio < 1e17 {
		return math.Log1p(ratio)
	}
	return math.Log(distance) - math.Log(width)
}

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
