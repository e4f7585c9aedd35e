package bayes_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

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
