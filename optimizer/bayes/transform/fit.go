package transform

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

const (
	lambdaLow, lambdaHigh = -5, 2
	// paperHigh is the highest λ of Paper. Its reference has no bound.
	paperHigh = 5
	// minResolution is the least sd of z over the outcomes that are not outliers.
	minResolution = 0.2
	// minSpread is the least usable sd of the values of a power transform, relative to
	// the largest: a smaller spread is only rounding.
	minSpread = 1e-9
	// minDistinct is the least number of distinct outcomes for fitting λ: two have the
	// same z under every transform, and three leave λ one equation.
	minDistinct = 4
	// maxSearched is how many outcomes the search for λ uses; larger samples are
	// thinned to quantiles.
	maxSearched = 1000
	// rounding is the relative spread that counts as zero.
	rounding = 1e-14
)

// Standard returns the transform that only subtracts the mean and divides by the
// standard deviation of y, which must be finite. Outcomes without spread are divided by
// their size instead.
func Standard(y []float64) Transform {
	v, exponent := scaledAndSorted(y)
	t := standard(v, exponent, clip{})
	t.all = t.extended(v)
	t.bulk = t.all
	return t
}

// Plain returns Standard after the soft clip if y has outliers: Fit without a power.
func Plain(y []float64) Transform {
	sorted, exponent := scaledAndSorted(y)
	outliers := fences(sorted)
	t := standard(squeezed(sorted, outliers), exponent, outliers)
	t.all = t.extended(sorted)
	t.bulk = t.extended(inliers(sorted, outliers))
	return t
}

// Paper returns the transform of HEBO's paper for the outcomes y, which must be finite:
// Box-Cox if all are positive, otherwise Yeo-Johnson of y/sd, with the most likely λ.
// Yeo-Johnson replaces a Box-Cox transform that fails, and Standard a Yeo-Johnson. The paper
// also allows for Box-Cox of outcomes that are all negative; its reference implementation,
// HEBO 0.3.6, takes Yeo-Johnson then, and so does this. It neither clips nor centres.
func Paper(y []float64) Transform {
	v, exponent := scaledAndSorted(y)
	work := make([]float64, len(v))
	all := chains(v, exponent, clip{})
	best := all[0]
	for _, kind := range []Kind{KindBoxCox, KindYeoJohnson} {
		at := slices.IndexFunc(all, func(t Transform) bool { return t.kind == kind })
		if at < 0 {
			continue
		}
		if t := all[at]; !math.IsInf(t.fit(v, work, paperHigh), -1) {
			best = t
			break
		}
	}
	best.all = best.extended(v)
	best.bulk = best.all
	return best
}

// Fit returns the transform under which the outcomes y, which must be finite, are most
// likely. Lower outcomes count as better, which only affects outliers. The result does
// not depend on the order of y.
func Fit(y []float64) Transform {
	sorted, exponent := scaledAndSorted(y)
	outliers := fences(sorted)
	inside := inliers(sorted, outliers)
	// If every chain fails, the outcomes are only standardised, and clipped if they have outliers: a model
	// of values that one outlier has squeezed together would be blind among the others.
	best, most := standard(sorted, exponent, clip{}), math.Inf(-1)
	if outliers.on {
		best = standard(squeezed(sorted, outliers), exponent, outliers)
	}
	work := make([]float64, len(sorted))
	for _, c := range []clip{{}, outliers} {
		v := squeezed(sorted, c)
		var jacobian float64
		for _, x := range sorted {
			jacobian += c.logDerivative(x)
		}
		for _, t := range chains(v, exponent, c) {
			value := t.fit(v, work, lambdaHigh) + jacobian
			if value > most && (!outliers.on || t.resolution(inside) >= minResolution) {
				best, most = t, value
			}
		}
		if !outliers.on {
			break
		}
	}
	best.all = best.extended(sorted)
	best.bulk = best.extended(inside)
	return best
}

// squeezed returns the clipped outcomes.
func squeezed(v []float64, c clip) []float64 {
	u := make([]float64, len(v))
	for i, x := range v {
		u[i] = c.apply(x)
	}
	return u
}

// resolution returns the sd of z over two or more scaled outcomes.
func (t *Transform) resolution(v []float64) float64 {
	var mean, squares float64
	for i, x := range v {
		z := t.standardised(x)
		d := z - mean
		mean += d / float64(i+1)
		squares += d * (z - mean)
	}
	return math.Sqrt(squares / float64(len(v)-1))
}

// chains returns the transforms that can be tried on sorted, squeezed outcomes, the
// plainest first, without λ, mean and sd.
func chains(v []float64, exponent int, c clip) []Transform {
	plain := standard(v, exponent, c)
	all := []Transform{plain}
	if distinct(v) < minDistinct || v[len(v)-1]-v[0] <= rounding*max(math.Abs(v[0]), math.Abs(v[len(v)-1])) {
		return all
	}
	add := func(kind Kind, centre, scale float64) {
		all = append(all, Transform{kind: kind, exponent: exponent, clip: c, centre: centre, scale: scale})
	}
	add(KindCentred, median(v), plain.scale)
	add(KindYeoJohnson, 0, plain.scale)
	if v[0] > 0 {
		var logs float64
		for i, x := range v {
			logs += (math.Log(x) - logs) / float64(i+1)
		}
		if g := math.Exp(logs); g > 0 {
			add(KindBoxCox, g, g)
		}
	}
	return all
}

// fit sets λ, at most high, and mean and sd by the profile likelihood of sorted, squeezed
// outcomes. It returns the log likelihood of the squeezed outcomes up to a constant, or −Inf if the
// transform fails. s is scratch space for their coordinates.
func (t *Transform) fit(v, s []float64, high float64) float64 {
	n := float64(len(v))
	if t.kind == KindStandard {
		return -n * (math.Log(t.scale) + math.Log(t.sd))
	}
	t.coordinates(s, v)
	some := thinned(s)
	sum := floats.Sum(some)
	t.lambda, _ = maximize(func(lambda float64) float64 {
		return profile(t.kind, lambda, some, sum)
	}, lambdaLow, high)
	t.mean, t.sd, _ = spread(t.kind, t.lambda, s)
	return profile(t.kind, t.lambda, s, floats.Sum(s)) - n*math.Log(t.scale)
}

// coordinates sets s to the coordinates of squeezed outcomes.
func (t *Transform) coordinates(s, v []float64) {
	for i, x := range v {
		s[i] = coordinate(t.kind, x, t.centre, t.scale)
	}
}

// thinned returns the sorted numbers, or maxSearched of them, evenly spaced.
func thinned(s []float64) []float64 {
	if len(s) <= maxSearched {
		return s
	}
	some := make([]float64, maxSearched)
	for i := range some {
		some[i] = s[i*(len(s)-1)/(maxSearched-1)]
	}
	return some
}

// profile returns the log likelihood of w up to a constant that depends on n, maximised
// over the mean and variance of ψ (Box and Cox 1964). It is −Inf if ψ overflows or has collapsed. Sum is
// the sum of s: since log dψ/dw = (λ−1)·s, the Jacobian takes no pass over the outcomes.
//
// The variance is that with n−1 degrees of freedom, as in Apply. The maximum likelihood has n, but
// the two differ by a factor, and so by a constant.
func profile(kind Kind, lambda float64, s []float64, sum float64) float64 {
	_, sd, ok := spread(kind, lambda, s)
	if !ok {
		return math.Inf(-1)
	}
	return (lambda-1)*sum - float64(len(s))*math.Log(sd)
}

// spread returns the mean and the sd (n−1 degrees of freedom) of ψ; ok is false if they
// are unusable.
func spread(kind Kind, lambda float64, s []float64) (mean, sd float64, ok bool) {
	var squares, largest float64
	for i, x := range s { // Welford's recurrence: a sum of squares loses all digits of a narrow spread
		v := power(kind, lambda, x)
		d := v - mean
		mean += d / float64(i+1)
		squares += d * (v - mean)
		largest = max(largest, math.Abs(v))
	}
	sd = math.Sqrt(squares / float64(len(s)-1))
	return mean, sd, sd > minSpread*largest && !math.IsInf(sd, 0)
}

// standard returns the plain transform of sorted outcomes.
func standard(v []float64, exponent int, c clip) Transform {
	t := Transform{kind: KindStandard, lambda: 1, exponent: exponent, clip: c, scale: 1, sd: 1}
	if len(v) == 0 {
		return t
	}
	for i, x := range v {
		t.centre += (x - t.centre) / float64(i+1)
	}
	reach := max(v[len(v)-1]-t.centre, t.centre-v[0])
	if largest := max(math.Abs(v[0]), math.Abs(v[len(v)-1])); reach <= rounding*largest {
		// The outcomes differ by rounding only.
		t.centre = median(v)
		if largest > 0 {
			t.scale = largest
		}
		return t
	}
	var squares float64
	for _, x := range v { // in units of reach, since squares may overflow
		squares += (x - t.centre) / reach * ((x - t.centre) / reach)
	}
	t.scale = reach * math.Sqrt(squares/float64(len(v)-1))
	// With narrow outcomes, the rounding of the centre matters.
	s := make([]float64, len(v))
	t.coordinates(s, v)
	t.mean, t.sd, _ = spread(t.kind, t.lambda, s)
	return t
}

// extended returns the range of sorted, scaled outcomes with its width added to
// either side, in y's units.
func (t *Transform) extended(v []float64) interval {
	if len(v) == 0 {
		return interval{-math.MaxFloat64, math.MaxFloat64}
	}
	low, high := v[0], v[len(v)-1]
	width := high - low
	if width == 0 {
		width = t.scale
	}
	finite := interval{-math.MaxFloat64, math.MaxFloat64}
	return interval{
		low:  finite.clamp(math.Ldexp(low-width, t.exponent)),
		high: finite.clamp(math.Ldexp(high+width, t.exponent)),
	}
}

// distinct counts the distinct values among sorted numbers.
func distinct(sorted []float64) int {
	return len(slices.Compact(slices.Clone(sorted)))
}

// inliers returns the sorted outcomes that the clip leaves alone.
func inliers(sorted []float64, c clip) []float64 {
	if !c.on {
		return sorted
	}
	var inside []float64
	for _, v := range sorted {
		if v >= c.low && v <= c.high {
			inside = append(inside, v)
		}
	}
	return inside
}
