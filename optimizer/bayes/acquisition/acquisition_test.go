package acquisition_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/bayestest"
)

func TestAcquisitions(t *testing.T) {
	for _, a := range []bayes.Acquisition{acquisition.EI{}, acquisition.EI{Latent: true}, acquisition.UCB{Kappa: 1.5}} {
		t.Run(a.Name(), func(t *testing.T) { bayestest.Acquisition(t, a) })
	}
}

// Checks the value of one more evaluation of a point against its definition by
// quadrature: the expected decrease of the best posterior mean.
func TestKnowledgeAgainstQuadrature(t *testing.T) {
	const variance, noise, mean = 0.3, 0.2, 0.1
	k := bayes.Known{Noise: noise}
	for _, rival := range []float64{-0.4, 0.1, 0.5} {
		const steps = 200_000
		sd := math.Sqrt(variance + noise)
		best := 0.0 // expected, by the midpoint rule over ±10 sd of the outcome
		for i := range steps {
			z := -10 + 20*(float64(i)+0.5)/steps
			posterior := mean + variance/(variance+noise)*sd*z
			best += min(posterior, rival) * distuv.UnitNormal.Prob(z) * 20 / steps
		}
		want := math.Log(min(mean, rival) - best)
		if got := acquisition.Knowledge(&k, mean, variance, rival); math.Abs(got-want) > 1e-6 {
			t.Errorf("rival %g: %v, by quadrature %v", rival, got, want)
		}
	}
}
