package surrogate

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// The searches of the model of HEBO's paper: a study's every fit starts at so many places,
// and takes so many steps from each, as GPy's optimize_restarts does in the reference.
const (
	paperStarts = 10
	paperSteps  = 200
)

// paperKernel is the covariance function of HEBO's paper over the columns, and how to fit its
// hyperparameters: a Matérn-3/2 kernel and a linear one, warped if the options say so. The
// paper does not state the priors. They are those of its reference implementation (the
// surrogate gpy of HEBO 0.3.6), which GPy applies as densities of what the softplus maps to
// the hyperparameters: Gamma(0.5, 1) on the Matérn kernel's variance, LogNormal(−4.63, 0.5) on
// the noise's, and none on the lengthscales and on the linear kernel's variance. The model differs
// from the reference in three details: the linear kernel counts from the middle of the warped range
// and not from its lower end, the exponents of the transforms lie between −5 and 5, and evaluations
// that failed are left out.
func (o Options) paperKernel(columns []kernel.Column) (*kernel.Kernel, gp.Config) {
	config := gp.DefaultConfig(len(columns))
	config.Noise.Prior, config.Noise.Start = gp.Softplus{Prior: gp.LogNormal{Mu: -4.63, Sigma: 0.5}}, -4.63
	for i := range columns {
		config.Kernel[i].Prior = gp.Flat{}
	}
	signal := &config.Kernel[len(columns)]
	signal.Prior, signal.Start = gp.Softplus{Prior: gp.Gamma{Shape: 0.5, Rate: 1}}, math.Log(0.5)
	seen := kernel.WithoutSnap(columns)
	k := kernel.NewMatern32(seen)
	if o.Kernel == Matern52 {
		k = kernel.NewMatern52(seen)
	}
	if o.Linear {
		k = kernel.NewSum(k, kernel.NewLinear(seen))
		config.Kernel = append(config.Kernel, gp.Param{Prior: gp.Flat{}, Min: math.Log(1e-6), Max: math.Log(1e3)})
	}
	config.Starts, config.Explore, config.Polish = paperStarts, paperSteps, 1
	if !o.Warp {
		return k, config
	}
	return warped(k, columns, config)
}
