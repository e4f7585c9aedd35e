// Package mcmc draws samples from densities that are known up to a constant, by Markov
// chains without step sizes to tune: slice sampling in one dimension, and elliptical
// slice sampling for vectors with a normal prior.
package mcmc

import (
	"math"
	"math/rand/v2"
)

// The limits on the work of one update. A density that is broader than maxSteps widths is
// still sampled correctly, in smaller steps. An update whose bracket shrinks maxShrinks
// times has met a density that is not one: it stays where it is.
const (
	maxSteps   = 32
	maxShrinks = 200
)

// Slice returns the next state of a chain at x, whose density has the logarithm log, up to
// a constant, and the value of log there. at is log(x). It is univariate slice sampling
// with stepping out and shrinkage (Neal 2003, figures 3 and 5); width is a guess of the
// density's width. log may return −Inf, but at must be finite.
func Slice(log func(x float64) float64, x, at, width float64, rng *rand.Rand) (next, value float64) {
	level := at + math.Log(1-rng.Float64())
	low := x - width*rng.Float64()
	high := low + width
	// The steps are shared out at random, so that the limit keeps the density invariant.
	left := rng.IntN(maxSteps)
	right := maxSteps - 1 - left
	for ; left > 0 && log(low) > level; left-- {
		low -= width
	}
	for ; right > 0 && log(high) > level; right-- {
		high += width
	}
	for range maxShrinks {
		next = low + (high-low)*rng.Float64()
		if value = log(next); value >= level {
			return next, value
		}
		if next < x {
			low = next
		} else {
			high = next
		}
	}
	return x, at
}

// Elliptical moves x, a chain's state, to its next state and returns the value of log
// there. The density is that of independent standard normal numbers times a likelihood
// whose logarithm is log; at is log(x). It is elliptical slice sampling (Murray, Adams and
// MacKay 2010, figure 2). log must not keep or change its argument and may return −Inf,
// but at must be finite.
func Elliptical(log func(x []float64) float64, x []float64, at float64, rng *rand.Rand) (value float64) {
	other, trial := make([]float64, len(x)), make([]float64, len(x))
	for i := range other {
		other[i] = rng.NormFloat64()
	}
	level := at + math.Log(1-rng.Float64())
	angle := 2 * math.Pi * rng.Float64()
	low, high := angle-2*math.Pi, angle
	for range maxShrinks {
		sin, cos := math.Sincos(angle)
		for i := range trial {
			trial[i] = x[i]*cos + other[i]*sin
		}
		if value = log(trial); value >= level {
			copy(x, trial)
			return value
		}
		if angle < 0 {
			low = angle
		} else {
			high = angle
		}
		angle = low + (high-low)*rng.Float64()
	}
	return at
}
