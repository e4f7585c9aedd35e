package bayes_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/bayestest"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

func TestGaussian(t *testing.T) {
	columns := kernel.Continuous(3)
	kernels := map[string]struct {
		k     *kernel.Kernel
		hyper []float64
	}{
		"matern32": {kernel.NewMatern32(columns), []float64{-0.5, 0.1, -1, 0.2}},
		"matern52": {kernel.NewMatern52(columns), []float64{-0.5, 0.1, -1, 0.2}},
		"matern52, a mean and a trend": {
			kernel.NewSum(kernel.NewSum(kernel.NewMatern52(columns), kernel.NewConstant(columns)), kernel.NewLinear(columns)),
			[]float64{-0.5, 0.1, -1, 0.2, math.Log(4), -2},
		},
	}
	for name, c := range kernels {
		for _, noise := range []float64{1e-4, 0.1} {
			t.Run(name, func(t *testing.T) {
				bayestest.Surrogate(t, 3, func(x *mat.Dense, y []float64) (bayes.Surrogate, error) {
					m, err := gp.Condition(c.k, gp.Hyperparameters{Kernel: c.hyper, Noise: noise}, x, y)
					if err != nil {
						return nil, err
					}
					return bayes.Gaussian(m), nil
				})
			})
		}
	}
}

func TestAcquisitions(t *testing.T) {
	for _, a := range []bayes.Acquisition{bayes.LogEI{}, bayes.LogEI{Latent: true}, bayes.UCB{Kappa: 1.5}} {
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
		if got := k.Knowledge(mean, variance, rival); math.Abs(got-want) > 1e-6 {
			t.Errorf("rival %g: %v, by quadrature %v", rival, got, want)
		}
	}
}
