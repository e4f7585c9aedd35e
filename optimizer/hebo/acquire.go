package hebo

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
)

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

// normals returns standard normal numbers for the draws (columns) of points (rows) as a
// Latin hypercube: each row is a random order of the midpoints of equally probable
// bins. A row sums to 0, so the mean over the draws stays at the posterior mean.
func normals(points, draws int, rng *rand.Rand) *mat.Dense {
	z := mat.NewDense(points, draws, nil)
	for i := range points {
		row := z.RawRowView(i)
		for s, bin := range rng.Perm(draws) {
			row[s] = mathext.NormalQuantile((float64(bin) + 0.5) / float64(draws))
		}
	}
	return z
}
