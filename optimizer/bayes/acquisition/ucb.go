package acquisition

import "github.com/fantasia-hpo/fantasia/optimizer/bayes"

// LCB returns the negated lower confidence bound kappa·sd − mean: the upper
// confidence bound of the negated objective (Srinivas et al. 2010, equation 6).
func LCB(mean, sd, kappa float64) float64 { return kappa*sd - mean }

// UCB is the upper confidence bound on the point's reward: Kappa standard deviations
// above its mean.
type UCB struct{ Kappa float64 }

var _ bayes.Acquisition = UCB{}

// Name implements bayes.Acquisition.
func (UCB) Name() string { return "ucb" }

// Reward implements bayes.Acquisition.
func (UCB) Reward() bool { return true }

// Value implements bayes.Acquisition.
func (a UCB) Value(_ *bayes.Known, mean, variance float64) float64 {
	sd, _ := latentSD(variance)
	return LCB(mean, sd, a.Kappa)
}

// Gradient implements bayes.Acquisition.
func (a UCB) Gradient(k *bayes.Known, mean, variance float64) (value, dMean, dVariance float64) {
	_, slope := latentSD(variance)
	return a.Value(k, mean, variance), -1, a.Kappa * slope
}
