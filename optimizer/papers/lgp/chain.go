package lgp

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/warp"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/mcmc"
)

// leastNoise is the variance of every observation's noise, for the sake of rounding.
const leastNoise = 1e-6

// farthest bounds hyperparameters in log space. Their priors are standard normal there, or
// narrower.
const farthest = 8

// target is the density from which a chain samples: that of the hyperparameters and the
// latent values, given observations. It is not safe for concurrent use.
type target struct {
	kind  Model
	k     *kernel.Kernel
	dim   int     // columns without the latent one
	sd    float64 // of latent inputs; 0 if there are none
	shape int     // shapes of the warp
	x     *mat.Dense
	y     []float64

	gram   *mat.SymDense
	factor linalg.Cholesky
	beta   []float64
}

// newTarget returns the target of a model for the rows of x with the outcomes y. sd is
// the standard deviation of the latent inputs; 0 leaves them out.
func newTarget(kind Model, columns []kernel.Column, x *mat.Dense, y []float64, sd float64) *target {
	n, dim := x.Dims()
	t := &target{kind: kind, dim: dim, sd: sd, y: y, gram: mat.NewSymDense(n, nil), beta: make([]float64, n)}
	switch {
	case kind == Warped:
		k := kernel.NewWarped(kernel.NewMatern52(kernel.WithoutSnap(columns)), columns)
		t.k, t.shape = k, 2*len(k.NumericColumns())
		t.x = t.k.Transform(x)
	case sd > 0:
		t.k = kernel.NewMatern52(append(slices.Clone(columns), kernel.Column{}))
		t.x = t.k.Transform(widened(x))
	default:
		t.k = kernel.NewMatern52(columns)
		t.x = t.k.Transform(x)
	}
	return t
}

// widened returns x with a latent column of zeros.
func widened(x mat.Matrix) *mat.Dense {
	n, d := x.Dims()
	wide := mat.NewDense(n, d+1, nil)
	wide.Slice(0, n, 0, d).(*mat.Dense).Copy(x)
	return wide
}

// params returns the number of hyperparameters: log ℓ, the logarithm of the noise's
// variance or of a factor of it if all observations share that, and the logarithms of the
// warp's shapes.
func (t *target) params() int {
	if t.kind == Homoscedastic || t.kind == Shared {
		return 2
	}
	return 1 + t.shape
}

// latents returns the number of latent values: the latent inputs in units of their
// standard deviation, or the logarithms of the noise's variances.
func (t *target) latents() int {
	if t.sd > 0 || t.kind == Heteroscedastic || t.kind == Shared {
		return len(t.y)
	}
	return 0
}

// hyperparameters returns those of the kernel.
func (t *target) hyperparameters(theta []float64) gp.Hyperparameters {
	h := gp.Hyperparameters{Kernel: make([]float64, t.k.NumParams()), Noise: leastNoise}
	for i := range t.k.Dim() {
		h.Kernel[i] = theta[0]
	}
	copy(h.Kernel[t.k.Dim()+1:], theta[len(theta)-t.shape:]) // behind the signal's variance, which is 1
	if t.kind == Homoscedastic {
		h.Noise += math.Exp(theta[1])
	}
	return h
}

// setLatent sets the latent column of x.
func (t *target) setLatent(latent []float64) {
	if t.sd > 0 {
		for i, v := range latent {
			t.x.Set(i, t.dim, t.sd*v)
		}
	}
}

// noises returns the variances of the single observations' noise; nil if they have none.
func (t *target) noises(theta, latent []float64) []float64 {
	var factor float64 // log
	switch t.kind {
	case Heteroscedastic:
	case Shared:
		factor = theta[1]
	case Latent, Plain, Homoscedastic, Warped:
		return nil
	}
	v := make([]float64, len(latent))
	for i, l := range latent {
		v[i] = math.Exp(factor + l)
	}
	return v
}

// log returns the logarithm of the outcomes' density, −Inf beyond the bounds.
func (t *target) log(theta, latent []float64) float64 {
	if floats.Norm(theta, math.Inf(1)) > farthest {
		return math.Inf(-1)
	}
	for _, shape := range theta[len(theta)-t.shape:] {
		if shape < math.Log(warp.MinShape) || shape > math.Log(warp.MaxShape) {
			return math.Inf(-1)
		}
	}
	h := t.hyperparameters(theta)
	t.setLatent(latent)
	t.k.Prepare(h.Kernel, t.x, false).Gram(t.gram)
	raw, noises := t.gram.RawSymmetric(), t.noises(theta, latent)
	for i := range t.y {
		raw.Data[i*raw.Stride+i] += h.Noise
		if noises != nil {
			raw.Data[i*raw.Stride+i] += noises[i]
		}
	}
	if err := t.factor.Factorize(t.gram); err != nil {
		return math.Inf(-1)
	}
	copy(t.beta, t.y)
	t.factor.SolveLVec(t.beta)
	value := -0.5*floats.Dot(t.beta, t.beta) - 0.5*t.factor.LogDet()
	if math.IsNaN(value) {
		return math.Inf(-1)
	}
	return value
}

// logPrior returns the log density of hyperparameter i, in log space.
func (t *target) logPrior(i int, v float64) float64 {
	if i >= t.params()-t.shape {
		v = (v - warp.LogShapeMean) / warp.LogShapeSD
	}
	return -v * v / 2
}

// chain is a Markov chain whose states are samples of its target, in the long run.
type chain struct {
	t             *target
	theta, latent []float64
	at            float64 // log at the state
}

// start returns a chain at the given state. Its density there must not be 0: it is not at
// theta and latent values of 0.
func (t *target) start(theta, latent []float64) *chain {
	return &chain{t: t, theta: theta, latent: latent, at: t.log(theta, latent)}
}

// blockShare is the share of the latent values in a block. A move of all of them at once
// is short where the likelihood is strong.
const blockShare = 8

// sweep updates each hyperparameter by slice sampling, all latent values together by
// elliptical slice sampling, and then a random block of them.
func (c *chain) sweep(rng *rand.Rand) {
	for i := range c.theta {
		log := func(v float64) float64 {
			before := c.theta[i]
			c.theta[i] = v
			value := c.t.log(c.theta, c.latent) + c.t.logPrior(i, v)
			c.theta[i] = before
			return value
		}
		v, at := mcmc.Slice(log, c.theta[i], c.at+c.t.logPrior(i, c.theta[i]), 1, rng)
		c.theta[i], c.at = v, at-c.t.logPrior(i, v)
	}
	if len(c.latent) == 0 {
		return
	}
	c.at = mcmc.Elliptical(func(v []float64) float64 { return c.t.log(c.theta, v) }, c.latent, c.at, rng)
	block := rng.Perm(len(c.latent))[:(len(c.latent)+blockShare-1)/blockShare]
	part, whole := make([]float64, len(block)), slices.Clone(c.latent)
	for k, i := range block {
		part[k] = c.latent[i]
	}
	c.at = mcmc.Elliptical(func(v []float64) float64 {
		for k, i := range block {
			whole[i] = v[k]
		}
		return c.t.log(c.theta, whole)
	}, part, c.at, rng)
	for k, i := range block {
		c.latent[i] = part[k]
	}
}

// model returns the process under the chain's state.
func (t *target) model(c *chain) (bayes.Surrogate, error) {
	t.setLatent(c.latent)
	m, err := gp.ConditionEach(t.k, t.hyperparameters(c.theta), t.x, t.y, t.noises(c.theta, c.latent))
	if err != nil {
		return nil, err
	}
	if t.sd > 0 {
		return modulated{bayes.Gaussian(m), t.dim}, nil
	}
	return bayes.Gaussian(m), nil
}

// modulated is a process over the parameters and one latent input, seen where the latent
// input is 0. Latent inputs of later evaluations are unknown; to average over them would
// make the model unsure everywhere, however many evaluations there are.
type modulated struct {
	bayes.Surrogate
	dim int
}

// Lengthscales implements bayes.Surrogate.
func (m modulated) Lengthscales() []float64 { return m.Surrogate.Lengthscales()[:m.dim] }

// Posterior implements bayes.Surrogate.
func (m modulated) Posterior(x mat.Matrix) (mean, variance []float64) {
	return m.Surrogate.Posterior(widened(x))
}

// Sample implements bayes.Surrogate.
func (m modulated) Sample(x, z mat.Matrix) (*mat.Dense, error) {
	return m.Surrogate.Sample(widened(x), z)
}

// Fantasies implements bayes.Surrogate.
func (m modulated) Fantasies() bayes.Fantasies {
	return fantasies{m.Surrogate.Fantasies(), m.dim}
}

// fantasies are those of a modulated process.
type fantasies struct {
	bayes.Fantasies
	dim int
}

// Believe implements bayes.Fantasies.
func (f fantasies) Believe(x mat.Matrix) { f.Fantasies.Believe(widened(x)) }

// Posterior implements bayes.Fantasies.
func (f fantasies) Posterior(x mat.Matrix) (mean, variance []float64) {
	return f.Fantasies.Posterior(widened(x))
}

// Candidates implements bayes.Fantasies.
func (f fantasies) Candidates(x mat.Matrix) *gp.Candidates {
	return f.Fantasies.Candidates(widened(x))
}

// Gradients implements bayes.Fantasies.
func (f fantasies) Gradients(x mat.Matrix) *gp.Gradients {
	g := f.Fantasies.Gradients(widened(x))
	g.DMean, g.DVariance = f.known(g.DMean), f.known(g.DVariance)
	return g
}

// known returns the columns of the parameters.
func (f fantasies) known(m *mat.Dense) *mat.Dense {
	n, _ := m.Dims()
	return m.Slice(0, n, 0, f.dim).(*mat.Dense)
}
