package uhe

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/mcmc"
)

// pseudoPoints is the number of pseudo-points for each observation.
const pseudoPoints = 2

// The chain of the method mcmc: sweeps before the first sample, for the study's first
// suggestion and for later ones, and between samples.
const (
	samples     = 10
	firstSweeps = 200
	laterSweeps = 4
	thinning    = 2
)

// model is what the methods have in common: a Matérn-5/2 kernel with a lengthscale for
// each parameter and a variance, and noise. It is not safe for concurrent use.
type model struct {
	kernel   *kernel.Kernel
	prior    gp.Gamma
	config   gp.Config
	encoding *optimizer.Encoding
	data     *surrogate.Data
}

// newModel returns the model of the data. A fit maximises the density that GPy does, the
// paper's software: the prior as a density of what the softplus maps to the hyperparameter.
func newModel(encoding *optimizer.Encoding, d *surrogate.Data, prior Prior) *model {
	m := &model{kernel.NewMatern52(surrogate.Columns(encoding)), prior.gamma(), gp.DefaultConfig(encoding.Dim()), encoding, d}
	for i := range m.config.Kernel {
		m.config.Kernel[i].Prior = gp.Softplus{Prior: m.prior}
	}
	m.config.Noise.Prior = gp.Softplus{Prior: m.prior}
	return m
}

// pseudo returns points drawn uniformly from the space, and for each the outcome of the
// nearest observation: a stand-in for independent data, which consistent estimates of
// hyperparameters need (equation 2 of the paper). Constraints do not matter to it.
func (m *model) pseudo(rng *rand.Rand) (x *mat.Dense, y []float64) {
	n, dim := m.data.X.Dims()
	columns := m.encoding.Columns()
	x, y = mat.NewDense(pseudoPoints*n, dim, nil), make([]float64, pseudoPoints*n)
	u := make([]float64, dim)
	for i := range y {
		for c := range u {
			u[c] = rng.Float64()
		}
		at := m.encoding.Encode(m.encoding.Decode(u))
		x.SetRow(i, at)
		least := math.Inf(1)
		for k := range n {
			if d := distance(columns, at, m.data.X.RawRowView(k)); d < least {
				least, y[i] = d, m.data.Y[k]
			}
		}
	}
	return x, y
}

// distance returns the squared distance of two points; different categories are 1 apart.
func distance(columns []optimizer.Column, a, b []float64) float64 {
	var sum float64
	for c, column := range columns {
		switch d := a[c] - b[c]; {
		case !column.Categorical():
			sum += d * d
		case d != 0:
			sum++
		}
	}
	return sum
}

// fit returns the most likely hyperparameters for the rows of x with the outcomes y. It
// starts from warm too, unless that is nil. If ctx ends, the result is unfinished.
func (m *model) fit(ctx context.Context, x *mat.Dense, y []float64, warm *gp.Hyperparameters, rng *rand.Rand) (gp.Hyperparameters, error) {
	config := m.config
	if config.Warm = warm; len(y) > config.Subset {
		config.Explore, config.Polish = 6, 4
	}
	fitted, err := gp.Fit(ctx, m.kernel, x, y, config, rng)
	if fitted == nil {
		return gp.Hyperparameters{}, err
	}
	return fitted.Model.Hyperparameters(), nil
}

// condition returns the process of the observations under the hyperparameters.
func (m *model) condition(h gp.Hyperparameters) (*gp.Model, error) {
	return gp.Condition(m.kernel, h, m.data.X, m.data.Y)
}

// shrunk divides the lengthscales by the factor.
func (m *model) shrunk(h gp.Hyperparameters, factor float64) gp.Hyperparameters {
	s := gp.Hyperparameters{Kernel: append([]float64(nil), h.Kernel...), Noise: h.Noise}
	for c := range m.kernel.Dim() {
		s.Kernel[c] -= math.Log(factor)
	}
	return s
}

// sample continues a Markov chain from h and returns the hyperparameters of its samples.
// first marks the chain's beginning. If ctx ends, there are fewer samples, but one.
func (m *model) sample(ctx context.Context, h gp.Hyperparameters, first bool, rng *rand.Rand) []gp.Hyperparameters {
	theta := append(append([]float64(nil), h.Kernel...), math.Log(max(h.Noise-m.config.NoiseFloor, math.SmallestNonzeroFloat64)))
	for i := range theta {
		p := m.param(i)
		theta[i] = min(max(theta[i], p.Min), p.Max)
	}
	at := m.logPosterior(theta)
	if math.IsInf(at, -1) {
		return []gp.Hyperparameters{h}
	}
	sweep := func() {
		for i := range theta {
			theta[i], at = mcmc.Slice(func(v float64) float64 {
				before := theta[i]
				theta[i] = v
				value := m.logPosterior(theta)
				theta[i] = before
				return value
			}, theta[i], at, 1, rng)
		}
	}
	sweeps := laterSweeps
	if first {
		sweeps = firstSweeps
	}
	for range sweeps {
		if ctx.Err() != nil {
			break
		}
		sweep()
	}
	all := []gp.Hyperparameters{m.at(theta)}
	for len(all) < samples && ctx.Err() == nil {
		for range thinning {
			sweep()
		}
		all = append(all, m.at(theta))
	}
	return all
}

// at returns hyperparameters of their logarithms, the last of which is that of the noise's
// variance above its floor.
func (m *model) at(theta []float64) gp.Hyperparameters {
	k := m.kernel.NumParams()
	return gp.Hyperparameters{Kernel: append([]float64(nil), theta[:k]...), Noise: m.config.NoiseFloor + math.Exp(theta[k])}
}

// param returns how a fit treats the hyperparameter i of at.
func (m *model) param(i int) gp.Param {
	if i < len(m.config.Kernel) {
		return m.config.Kernel[i]
	}
	return m.config.Noise
}

// logPosterior returns the log density of the logarithms of the hyperparameters, up to a
// constant, given the observations; −Inf beyond the bounds of a fit.
func (m *model) logPosterior(theta []float64) float64 {
	var value float64
	for i, v := range theta {
		p := m.param(i)
		if v < p.Min || v > p.Max {
			return math.Inf(-1)
		}
		density, _ := m.prior.LogDensity(v)
		value += density + v // the density of log v is that of v, times v
	}
	process, err := m.condition(m.at(theta))
	if err != nil {
		return math.Inf(-1)
	}
	if value += process.LogMarginalLikelihood(); math.IsNaN(value) {
		return math.Inf(-1)
	}
	return value
}
