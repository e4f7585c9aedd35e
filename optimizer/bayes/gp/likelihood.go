package gp

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
)

// wall is the weight of the squared distance beyond a bound, in nats: a tenth of a unit in
// log space costs one.
const wall = 100

// objective is the negative log posterior density of the free hyperparameters, with the
// memory shared by its evaluations.
type objective struct {
	kernel *kernel.Kernel
	config *Config
	x      *mat.Dense
	y      []float64 // above the prior mean

	points        *kernel.Points // x under the hyperparameters at
	gram, inverse *mat.SymDense
	factor        linalg.Cholesky
	beta, alpha   []float64
	at            []float64 // where factor and beta were computed; nil if nowhere
	atValue       float64
	err           error // of the factorisation there
	dKernel       []float64
	evaluations   int // of the gradient
}

func newObjective(k *kernel.Kernel, x *mat.Dense, y []float64, config *Config) *objective {
	n := len(y)
	return &objective{
		kernel: k, config: config, x: x, y: above(k, x, y),
		gram: mat.NewSymDense(n, nil), inverse: mat.NewSymDense(n, nil),
		beta: make([]float64, n), alpha: make([]float64, n),
		dKernel: make([]float64, k.NumParams()),
	}
}

// hyperparameters returns all hyperparameters, limited to their bounds, for the free
// ones v.
func (o *objective) hyperparameters(v []float64) Hyperparameters {
	take := func(p Param) float64 {
		value := p.Start
		if !p.Fixed {
			value, v = v[0], v[1:]
		}
		return min(max(value, p.Min), p.Max)
	}
	h := Hyperparameters{Kernel: make([]float64, len(o.config.Kernel))}
	for i, p := range o.config.Kernel {
		h.Kernel[i] = take(p)
	}
	h.Noise = o.config.NoiseFloor + math.Exp(take(o.config.Noise))
	return h
}

// value returns the objective, or +Inf if the covariance matrix cannot be factored. It keeps
// the factor, since gonum asks for the value and the gradient at one place in turn, and the
// factorisation is what both of them cost.
func (o *objective) value(v []float64) float64 {
	if o.at != nil && slices.Equal(o.at, v) {
		return o.atValue
	}
	h := o.hyperparameters(v)
	o.at = append(o.at[:0], v...)
	o.points = o.kernel.Prepare(h.Kernel, o.x, true)
	o.points.Gram(o.gram)
	addDiagonal(o.gram, h.Noise)
	if o.err = o.factor.Factorize(o.gram); o.err != nil {
		o.atValue = math.Inf(1)
		return o.atValue
	}
	copy(o.beta, o.y)
	o.factor.SolveLVec(o.beta)
	o.atValue = -logLikelihood(o.beta, o.factor.LogDet())
	for i, p := range o.config.free() {
		prior, _ := p.Prior.LogDensity(v[i])
		beyond := v[i] - min(max(v[i], p.Min), p.Max)
		o.atValue += wall*beyond*beyond - prior
	}
	return o.atValue
}

// gradient sets grad to the objective's derivatives:
//
//	∂(−log p)/∂θ = −½ tr((ααᵀ − K⁻¹)·∂K/∂θ) − ∂log prior/∂θ
//
// (Rasmussen and Williams, equation 5.9).
func (o *objective) gradient(grad, v []float64) {
	if math.IsInf(o.value(v), 1) {
		clear(grad)
		return
	}
	o.evaluations++
	h := o.hyperparameters(v)
	copy(o.alpha, o.beta)
	o.factor.SolveLTVec(o.alpha)
	o.factor.Inverse(o.inverse)
	// inverse becomes K⁻¹ − ααᵀ.
	raw := o.inverse.RawSymmetric()
	blas64.Syr(
		-1, blas64.Vector{N: len(o.alpha), Inc: 1, Data: o.alpha},
		blas64.Symmetric{N: raw.N, Stride: raw.Stride, Data: raw.Data, Uplo: blas.Upper},
	)
	o.points.ParamGradient(o.dKernel, o.inverse)
	var trace float64
	for i := range raw.N {
		trace += raw.Data[i*raw.Stride+i]
	}
	dNoise := trace * (h.Noise - o.config.NoiseFloor)
	i := 0
	for j, p := range append(append([]Param(nil), o.config.Kernel...), o.config.Noise) {
		if p.Fixed {
			continue
		}
		inside := min(max(v[i], p.Min), p.Max)
		_, prior := p.Prior.LogDensity(v[i])
		grad[i] = 2*wall*(v[i]-inside) - prior
		if inside == v[i] {
			if j < len(o.dKernel) {
				grad[i] += o.dKernel[j] / 2
			} else {
				grad[i] += dNoise / 2
			}
		}
		i++
	}
}

// model returns the model with the free hyperparameters v. It takes over the
// objective's memory; the objective MUST NOT be used afterwards.
func (o *objective) model(v []float64) (*Model, error) {
	if o.value(v); o.err != nil {
		return nil, fmt.Errorf("fit to %d observations: %w", len(o.y), o.err)
	}
	m := &Model{kernel: o.kernel, hyper: o.hyperparameters(v), x: o.x, points: o.points, factor: o.factor, beta: o.beta}
	m.alpha = append(o.alpha[:0], m.beta...)
	m.factor.SolveLTVec(m.alpha)
	return m, nil
}
