// Package acquisition holds acquisition functions: they rate how much a point is worth
// evaluating, given the mean and standard deviation of the objective there. The
// objective is minimised; larger acquisition values are better. All functions are pure.
package acquisition

import (
	"math"
	"slices"
)

// LogEI returns the logarithm of the expected improvement below best of a
// normal variable with the given mean and standard deviation sd ≥ 0:
//
//	log E[max(best − f, 0)] = log sd + log(φ(z) + z·Φ(z)),  z = (best − mean)/sd
//
// It is accurate to rounding in z, also where the expected improvement itself
// underflows: the function of Ament et al. 2023 (Unexpected Improvements to
// Expected Improvement for Bayesian Optimization, equation 9), with a
// continued fraction for its tail. It is −Inf where no improvement is possible.
func LogEI(mean, sd, best float64) float64 {
	if sd == 0 {
		return math.Log(math.Max(best-mean, 0))
	}
	value, _, _ := LogEIGradient(mean, sd, best)
	return value
}

// LogEIGradient returns LogEI and its derivatives with respect to the mean and
// the standard deviation, which must be positive.
func LogEIGradient(mean, sd, best float64) (value, dMean, dSD float64) {
	z := (best - mean) / sd
	// EI = sd·h(z) with h = φ + z·Φ, h' = Φ and h − z·h' = φ.
	if z <= -1 {
		ratio, deficit := mills(-z)
		return math.Log(sd) + logDensity(z) + math.Log(deficit), -ratio / deficit / sd, 1 / deficit / sd
	}
	density, below := math.Exp(logDensity(z)), math.Erfc(-z/math.Sqrt2)/2
	h := density + z*below
	return math.Log(sd) + math.Log(h), -below / h / sd, density / h / sd
}

// LogPI returns the logarithm of the probability that a normal variable with
// the given mean and standard deviation sd > 0 is below best.
func LogPI(mean, sd, best float64) float64 { return LogCDF((best - mean) / sd) }

// LCB returns the negated lower confidence bound kappa·sd − mean: the upper
// confidence bound of the negated objective.
func LCB(mean, sd, kappa float64) float64 { return kappa*sd - mean }

// LogMeanExp returns log((Σ exp v_i)/n), the logarithm of the mean of an
// acquisition whose logarithm is v_i in draw i, without overflow. It is −Inf
// for values that are all −Inf, and panics for none.
func LogMeanExp(v []float64) float64 {
	if len(v) == 0 {
		panic("acquisition: LogMeanExp of no values")
	}
	largest := slices.Max(v)
	if math.IsInf(largest, 0) {
		return largest
	}
	var sum float64
	for _, x := range v {
		sum += math.Exp(x - largest)
	}
	return largest + math.Log(sum/float64(len(v)))
}
