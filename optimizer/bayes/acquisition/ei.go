package acquisition

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
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
	if z <= -1 { // φ and z·Φ cancel in this tail
		ratio, deficit := mills(-z)
		return math.Log(sd) + logDensity(z) + math.Log(deficit), -ratio / deficit / sd, 1 / deficit / sd
	}
	density, below := math.Exp(logDensity(z)), math.Erfc(-z/math.Sqrt2)/2
	h := density + z*below
	return math.Log(sd) + math.Log(h), -below / h / sd, density / h / sd
}

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

// EI is the acquisition function that users call logei: LogEI over the incumbent.
type EI struct {
	// Latent compares the objective itself with the incumbent. Otherwise EI compares the
	// posterior mean after one more evaluation, which moves less the noisier evaluations
	// are: noise must not look like improvement.
	Latent bool
}

var _ bayes.Acquisition = EI{}

// Name implements bayes.Acquisition.
func (EI) Name() string { return "logei" }

// Reward implements bayes.Acquisition.
func (EI) Reward() bool { return false }

// Value implements bayes.Acquisition.
func (a EI) Value(k *bayes.Known, mean, variance float64) float64 {
	sd, _ := a.spread(k, variance)
	return LogEI(mean, sd, k.Incumbent)
}

// Gradient implements bayes.Acquisition.
func (a EI) Gradient(k *bayes.Known, mean, variance float64) (value, dMean, dVariance float64) {
	sd, slope := a.spread(k, variance)
	value, dMean, dSD := LogEIGradient(mean, sd, k.Incumbent)
	return value, dMean, dSD * slope
}

// spread returns the standard deviation that EI uses, and its derivative by the variance.
func (a EI) spread(k *bayes.Known, variance float64) (sd, slope float64) {
	if a.Latent {
		return latentSD(variance)
	}
	return learntSD(variance, k.Noise)
}

// latentSD returns the standard deviation of the objective itself, and its derivative by
// the variance.
func latentSD(variance float64) (sd, slope float64) {
	sd = math.Sqrt(variance)
	return sd, 1 / (2 * sd)
}
