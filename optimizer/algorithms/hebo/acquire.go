package hebo

import "github.com/fantasia-hpo/fantasia/optimizer/bayes"

// criterion returns the function that scores single points. Portfolio replaces it from
// point to point, and MACE scores only its spare points by it.
func (a Acquisition) criterion(kappa float64) bayes.Acquisition {
	switch a {
	case LogPI:
		return bayes.LogPI{}
	case UCB:
		return bayes.UCB{Kappa: kappa}
	case MACE:
		return bayes.LogEI{Latent: true}
	case LogEI, Portfolio:
	}
	return bayes.LogEI{}
}
