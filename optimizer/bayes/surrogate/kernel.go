package surrogate

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/warp"
)

// noisePrior is twice as wide, in log space, as gp.DefaultConfig's, and its mode is e⁻⁸
// instead of e⁻⁵: objectives range from exact functions to validation errors of a few
// samples. A model that is forced to believe in noise measures the same place again and
// again.
var noisePrior = gp.LogNormal{Mu: -4, Sigma: 2}

// Covariance returns the covariance function over an encoding's columns and how to fit its
// hyperparameters. Where a parameter decides which others are active, the numeric columns
// have a lengthscale for each of its values beside the common one.
func (o Options) Covariance(encoding *optimizer.Encoding) (*kernel.Kernel, gp.Config) {
	plain := Columns(encoding)
	if o.Paper {
		return o.paperKernel(plain)
	}
	k, config := o.overBranches(plain, branches(encoding))
	if o.Earlier != nil {
		k = kernel.NewSum(k, o.Earlier.Kernel(plain))
	}
	return k, config
}

// overBranches is kernel without what earlier studies found.
func (o Options) overBranches(plain []kernel.Column, branches []kernel.Branch) (*kernel.Kernel, gp.Config) {
	if len(branches) == 0 {
		return o.over(plain)
	}
	k, config := o.over(kernel.BranchedColumns(plain, branches))
	return kernel.NewBranched(k, plain, branches), config
}

// over is Covariance over columns without branches.
func (o Options) over(columns []kernel.Column) (*kernel.Kernel, gp.Config) {
	config := gp.DefaultConfig(len(columns))
	config.Noise.Prior = noisePrior
	config.NoiseFloor = max(config.NoiseFloor, o.NoiseFloor)
	for i := range columns {
		if o.Lengthscales == LengthscalesFlat {
			config.Kernel[i].Prior = gp.Flat{}
		}
	}
	seen := columns
	if o.Warp {
		seen = kernel.WithoutSnap(columns)
	}
	k := kernel.NewMatern32(seen)
	if o.Kernel == Matern52 {
		k = kernel.NewMatern52(seen)
	}
	k = kernel.NewSum(k, kernel.NewConstant(seen))
	config.Kernel = append(config.Kernel, constantVariance)
	if o.Linear {
		k = kernel.NewSum(k, kernel.NewLinear(seen))
		config.Kernel = append(config.Kernel, linearVariance)
	}
	if !o.Warp {
		return k, config
	}
	return warped(k, columns, config)
}

// warped is a kernel over warped columns.
func warped(k *kernel.Kernel, columns []kernel.Column, config gp.Config) (*kernel.Kernel, gp.Config) {
	w := kernel.NewWarped(k, columns)
	for range w.NumericColumns() {
		config.Kernel = append(config.Kernel, warpShape, warpShape)
	}
	return w, config
}

var (
	// constantVariance is the variance of the process's mean: a search's outcomes crowd
	// near the best, so their average says little about the rest.
	constantVariance = gp.Param{Prior: gp.Flat{}, Start: math.Log(4), Fixed: true, Min: -20, Max: 20}
	linearVariance   = gp.Param{Prior: gp.Gamma{Shape: 1, Rate: 1}, Start: -2, Min: math.Log(1e-6), Max: math.Log(1e3)}
	// warpShape has a prior that is normal in log space. LogNormal's density is that of
	// the shape itself, whose mode lies lower by Sigma².
	warpShape = gp.Param{
		Prior: gp.LogNormal{Mu: warp.LogShapeMean + warp.LogShapeSD*warp.LogShapeSD, Sigma: warp.LogShapeSD},
		Min:   math.Log(warp.MinShape), Max: math.Log(warp.MaxShape),
	}
)

// NumParams returns the number of the kernel's hyperparameters over an encoding.
func (o Options) NumParams(encoding *optimizer.Encoding) int {
	if encoding.Dim() == 0 {
		return 0
	}
	k, _ := o.Covariance(encoding)
	return k.NumParams()
}

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
