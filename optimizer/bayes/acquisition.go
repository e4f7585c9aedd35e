package bayes

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
)

// Known is what an Acquisition knows beside the posterior that it scores.
type Known struct {
	// Incumbent is the lowest posterior mean at an evaluated or pending point. The lowest
	// observed value may just have been lucky.
	Incumbent float64
	// Noise is the variance of an evaluation's noise, 0 if it is ignored.
	Noise float64
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

// LogEHVI is the logarithm of the expected improvement of a front's hypervolume.
type LogEHVI struct {
	*acquisition.Hypervolume
	// Noise is the variance of an evaluation's noise in each objective. With it, LogEHVI compares
	// the posterior means after one more evaluation, as LogEI does; nil ignores noise.
	Noise []float64
}

var (
	_ Acquisition = LogEI{}
	_ Acquisition = UCB{}
	_ Joint       = LogEHVI{}
)

// Name implements Joint.
func (LogEHVI) Name() string { return "logehvi" }

// Value implements Joint.
func (a LogEHVI) Value(mean, variance []float64) float64 {
	sd, _ := a.spread(variance)
	return a.LogEHVI(mean, sd)
}

// Gradient implements Joint.
func (a LogEHVI) Gradient(mean, variance, dMean, dVariance []float64) float64 {
	sd, slopes := a.spread(variance)
	value := a.LogEHVIGradient(mean, sd, dMean, dVariance)
	for i, slope := range slopes {
		dVariance[i] *= slope
	}
	return value
}

// spread returns the standard deviation that LogEHVI uses of each objective, and its derivative
// by the variance.
func (a LogEHVI) spread(variance []float64) (sd, slopes []float64) {
	sd, slopes = make([]float64, len(variance)), make([]float64, len(variance))
	for i, v := range variance {
		sd[i], slopes[i] = latent(v)
		if a.Noise != nil {
			k := Known{Noise: a.Noise[i]}
			sd[i], slopes[i] = k.learnt(v)
		}
	}
	return sd, slopes
}

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
func (a LogEI) Value(k *Known, mean, variance float64) float64 {
	sd, _ := a.spread(k, variance)
	return acquisition.LogEI(mean, sd, k.Incumbent)
}

// Gradient implements Acquisition.
func (a LogEI) Gradient(k *Known, mean, variance float64) (value, dMean, dVariance float64) {
	sd, slope := a.spread(k, variance)
	value, dMean, dSD := acquisition.LogEIGradient(mean, sd, k.Incumbent)
	return value, dMean, dSD * slope
}

// Value implements Acquisition.
func (a UCB) Value(_ *Known, mean, variance float64) float64 {
	sd, _ := latent(variance)
	return acquisition.LCB(mean, sd, a.Kappa)
}

// Gradient implements Acquisition.
func (a UCB) Gradient(k *Known, mean, variance float64) (value, dMean, dVariance float64) {
	_, slope := latent(variance)
	return a.Value(k, mean, variance), -1, a.Kappa * slope
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
