package bayes

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
)

// Known is what an Acquisition knows beside the posterior that it scores. It is not safe
// for concurrent use.
type Known struct {
	// Incumbents are, for each draw, the lowest posterior mean at an evaluated or pending
	// point. The lowest observed value may just have been lucky.
	Incumbents []float64
	// Noise is the variance of an evaluation's noise, 0 if it is ignored.
	Noise float64

	values []float64 // of the draws, reused
}

// LogEI is the logarithm of the expected improvement over the incumbent.
type LogEI struct {
	// Latent compares the objective itself. Otherwise LogEI compares the posterior mean
	// after one more evaluation, which moves less the noisier evaluations are.
	Latent bool
}

// UCB is the upper confidence bound on the point's reward: Kappa standard deviations
// above its mean.
type UCB struct{ Kappa float64 }

var (
	_ Acquisition = LogEI{}
	_ Acquisition = UCB{}
)

// Name implements Acquisition.
func (LogEI) Name() string { return "logei" }

// Name implements Acquisition.
func (UCB) Name() string { return "ucb" }

// Reward implements Acquisition.
func (LogEI) Reward() bool { return false }

// Reward implements Acquisition.
func (UCB) Reward() bool { return true }

// spread returns the standard deviation that LogEI uses, and its derivative by the
// variance.
func (a LogEI) spread(k *Known, variance float64) (sd, slope float64) {
	if a.Latent {
		return latent(variance)
	}
	return k.learnt(variance)
}

func latent(variance float64) (sd, slope float64) {
	sd = math.Sqrt(variance)
	return sd, 1 / (2 * sd)
}

// Value implements Acquisition.
func (a LogEI) Value(k *Known, mean []float64, variance float64) float64 {
	sd, _ := a.spread(k, variance)
	return k.overDraws(acquisition.LogEI, mean, sd)
}

// Gradient implements Acquisition.
func (a LogEI) Gradient(k *Known, dMean, mean []float64, variance float64) (value, dVariance float64) {
	sd, slope := a.spread(k, variance)
	value = k.overDraws(acquisition.LogEI, mean, sd)
	return value, k.gradient(acquisition.LogEIGradient, dMean, mean, sd, slope, value)
}

// Value implements Acquisition.
func (a UCB) Value(_ *Known, mean []float64, variance float64) float64 {
	sd, _ := latent(variance)
	return acquisition.LCB(Average(mean), sd, a.Kappa)
}

// Gradient implements Acquisition.
func (a UCB) Gradient(k *Known, dMean, mean []float64, variance float64) (value, dVariance float64) {
	for s := range dMean {
		dMean[s] = -1 / float64(len(mean))
	}
	_, slope := latent(variance)
	return a.Value(k, mean, variance), a.Kappa * slope
}

// overDraws returns the logarithm of the mean, over the draws, of an improvement whose
// logarithm f returns.
func (k *Known) overDraws(f func(mean, sd, target float64) float64, mean []float64, sd float64) float64 {
	k.values = k.values[:0]
	for s, m := range mean {
		k.values = append(k.values, f(m, sd, k.Incumbents[s]))
	}
	return acquisition.LogMeanExp(k.values)
}

// gradient sets dMean to the derivatives of overDraws by the means and returns that by
// the variance. f returns the derivatives of the improvement's logarithm by the mean and
// the standard deviation, slope is that of the latter by the variance.
func (k *Known) gradient(f func(mean, sd, target float64) (v, byMean, bySD float64), dMean, mean []float64, sd, slope, value float64) (dVariance float64) {
	for s, m := range mean {
		v, byMean, bySD := f(m, sd, k.Incumbents[s])
		// d log Σ exp v_s / dv_s is the draw's share of the sum.
		share := math.Exp(v-value) / float64(len(mean))
		dMean[s] = share * byMean
		dVariance += share * bySD * slope
	}
	return dVariance
}

// learnt returns the standard deviation of the posterior mean at a point after one more
// evaluation there, and its derivative by the variance. Without noise this is the
// posterior's standard deviation; large noise makes it small (Frazier, Powell and
// Dayanik 2009, the knowledge gradient of one point).
func (k *Known) learnt(variance float64) (sd, slope float64) {
	total := variance + k.Noise
	root := math.Sqrt(total)
	return variance / root, (variance + 2*k.Noise) / (2 * total * root)
}

// Knowledge returns the logarithm of the expected gain in the best posterior mean from
// one more evaluation of a point, given the mean of its best rival.
func (k *Known) Knowledge(mean, variance, rival float64) float64 {
	sd, _ := k.learnt(variance)
	if mean < rival {
		mean, rival = rival, mean
	}
	return acquisition.LogEI(mean, sd, rival)
}

// Average returns the mean of v, which must not be empty.
func Average(v []float64) float64 {
	var mean float64
	for i, x := range v {
		mean += (x - mean) / float64(i+1)
	}
	return mean
}
