// Package acquisition holds the functions that say how much a point is worth
// evaluating, given the mean and standard deviation of the objective there. The
// objective is minimised; larger acquisition values are better. All functions
// are pure.
package acquisition

import "math"

const (
	logSqrt2Pi = 0.918938533204672741780329736405617639861397473637783412817
	// halfLogHalfPi is ½ ln(π/2).
	halfLogHalfPi = 0.225791352644727432363097614947441071785897339272703096187
)

// LogEI returns the logarithm of the expected improvement below best of a
// normal variable with the given mean and standard deviation sd > 0:
//
//	log E[max(best − f, 0)] = log sd + log(φ(z) + z·Φ(z)),  z = (best − mean)/sd
//
// It is accurate to rounding in z, also where the expected improvement itself
// underflows (Ament et al. 2023, Unexpected Improvements to Expected
// Improvement for Bayesian Optimization, equation 9).
func LogEI(mean, sd, best float64) float64 {
	return math.Log(sd) + logH((best-mean)/sd)
}

// LogEIGradient returns LogEI and its derivatives with respect to the mean and
// the standard deviation.
func LogEIGradient(mean, sd, best float64) (value, dMean, dSD float64) {
	z := (best - mean) / sd
	h := logH(z)
	// EI = sd·h(z) with h' = Φ and h − z·h' = φ.
	dMean = -math.Exp(LogCDF(z)-h) / sd
	dSD = math.Exp(-z*z/2-logSqrt2Pi-h) / sd
	return math.Log(sd) + h, dMean, dSD
}

// LogPI returns the logarithm of the probability that a normal variable with
// the given mean and standard deviation sd > 0 is below best.
func LogPI(mean, sd, best float64) float64 { return LogCDF((best - mean) / sd) }

// LCB returns the negative lower confidence bound kappa·sd − mean: how low the
// objective may well be, larger being better.
func LCB(mean, sd, kappa float64) float64 { return kappa*sd - mean }

// LogMeanExp returns log((Σ exp v_i)/n), the logarithm of the mean of an
// acquisition whose logarithm is v_i in draw i, without overflow. It is −Inf
// for values that are all −Inf, and panics for none.
func LogMeanExp(v []float64) float64 {
	if len(v) == 0 {
		panic("acquisition: the mean of no values")
	}
	largest := math.Inf(-1)
	for _, x := range v {
		largest = math.Max(largest, x)
	}
	if math.IsInf(largest, 0) {
		return largest
	}
	var sum float64
	for _, x := range v {
		sum += math.Exp(x - largest)
	}
	return largest + math.Log(sum/float64(len(v)))
}
