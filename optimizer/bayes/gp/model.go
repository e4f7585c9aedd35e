package gp

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
)

// Hyperparameters are everything that a fit chooses.
type Hyperparameters struct {
	// Kernel holds the kernel's hyperparameters, in its order, in log space.
	Kernel []float64 `json:"kernel"`
	// Noise is the variance of the observations' noise, not negative.
	Noise float64 `json:"noise"`
}

// Model is a Gaussian process conditioned on data. It is immutable and safe for
// concurrent use. It keeps the Cholesky factor LLᵀ = K + σ²I and what predictions need of
// it (Rasmussen and Williams, algorithm 2.1): a mean then costs O(n) a point, a variance
// O(n²).
type Model struct {
	kernel *kernel.Kernel
	hyper  Hyperparameters
	x      *mat.Dense     // transformed by the kernel
	points *kernel.Points // x, prepared
	factor linalg.Cholesky
	beta   []float64 // L⁻¹y, where y counts from the prior mean
	alpha  []float64 // L⁻ᵀL⁻¹y
}

// Condition returns the posterior of a Gaussian process with the prior mean and the
// covariance of k given observations y of the rows of x under independent
// noise. y must be finite. The error wraps linalg.ErrNotPositiveDefinite.
func Condition(k *kernel.Kernel, h Hyperparameters, x mat.Matrix, y []float64) (*Model, error) {
	return ConditionEach(k, h, x, y, nil)
}

// ConditionEach is Condition for observations whose noise differs: the variance of row i's
// noise is h.Noise + extra[i]. A point added by Fantasies has the noise h.Noise. extra may
// be nil.
func ConditionEach(k *kernel.Kernel, h Hyperparameters, x mat.Matrix, y, extra []float64) (*Model, error) {
	if n, d := x.Dims(); n != len(y) || d != k.Dim() || len(h.Kernel) != k.NumParams() {
		panic(fmt.Sprintf("gp: %d×%d points, %d outcomes, %d hyperparameters for a kernel of %d columns and %d hyperparameters",
			n, d, len(y), len(h.Kernel), k.Dim(), k.NumParams()))
	}
	m := &Model{kernel: k, x: k.Transform(x)}
	m.hyper = Hyperparameters{Kernel: append([]float64(nil), h.Kernel...), Noise: h.Noise}
	gram := mat.NewSymDense(len(y), nil)
	m.points = k.Prepare(h.Kernel, m.x, false)
	m.points.Gram(gram)
	addDiagonal(gram, h.Noise)
	for i, v := range extra {
		gram.SetSym(i, i, gram.At(i, i)+v)
	}
	if err := m.factor.Factorize(gram); err != nil {
		return nil, fmt.Errorf("condition on %d observations: %w", len(y), err)
	}
	m.beta = above(k, m.x, y)
	m.factor.SolveLVec(m.beta)
	m.alpha = append([]float64(nil), m.beta...)
	m.factor.SolveLTVec(m.alpha)
	return m, nil
}

// above returns how far y lies above the prior mean of k's process at the transformed points x.
func above(k *kernel.Kernel, x *mat.Dense, y []float64) []float64 {
	out := slices.Clone(y)
	if drift := k.Drift(x); drift != nil {
		floats.Sub(out, drift)
	}
	return out
}

func addDiagonal(a *mat.SymDense, v float64) {
	raw := a.RawSymmetric()
	for i := range raw.N {
		raw.Data[i*raw.Stride+i] += v
	}
}

// Dim returns the number of columns of the points.
func (m *Model) Dim() int { return m.kernel.Dim() }

// Len returns the number of observations.
func (m *Model) Len() int { return len(m.beta) }

// Hyperparameters returns a copy of the model's hyperparameters.
func (m *Model) Hyperparameters() Hyperparameters {
	return Hyperparameters{Kernel: append([]float64(nil), m.hyper.Kernel...), Noise: m.hyper.Noise}
}

// LogMarginalLikelihood returns log p(y | X, hyperparameters):
//
//	−½ yᵀ(K + σ²I)⁻¹y − ½ log |K + σ²I| − ½ n log 2π
//
// (Rasmussen and Williams, equation 2.30), without any prior.
func (m *Model) LogMarginalLikelihood() float64 {
	return logLikelihood(m.beta, m.factor.LogDet())
}

func logLikelihood(beta []float64, logDet float64) float64 {
	return -0.5*floats.Dot(beta, beta) - 0.5*logDet - 0.5*float64(len(beta))*math.Log(2*math.Pi)
}

// Posterior returns the posterior mean and variance of the function, without
// observation noise, at the rows of x. Variances are positive: those that rounding
// makes smaller are set to 1e-12 of the prior variance, or 1e-150.
func (m *Model) Posterior(x mat.Matrix) (mean, variance []float64) {
	return m.Fantasies().Posterior(x)
}

// Mean returns the posterior mean at the rows of x. It takes O(n) steps a row,
// where Posterior takes O(n²) for the variance.
func (m *Model) Mean(x mat.Matrix) []float64 {
	at := m.kernel.Transform(x)
	rows, d := at.Dims()
	mean := make([]float64, rows)
	linalg.Parallel(rows, largestBlock, func(_, lo, hi int) {
		cross, points := mat.NewDense(m.Len(), hi-lo, nil), m.kernel.Prepare(m.hyper.Kernel, at.Slice(lo, hi, 0, d).(*mat.Dense), false)
		m.points.Cross(cross, points)
		linalg.AddRows(mean[lo:hi], m.alpha, cross.RawMatrix())
		points.AddDrift(mean[lo:hi])
	})
	return mean
}

// Weights returns the posterior means of the weights of the kernel's functions (kernel.NewFeatures); nil if
// it has none.
func (m *Model) Weights() []float64 { return m.kernel.Weights(m.x, m.alpha) }

// MeanSlopes returns the derivatives of Mean by the coordinates of the rows of x. They are 0 in
// columns that the kernel snaps.
func (m *Model) MeanSlopes(x mat.Matrix) *mat.Dense {
	at := m.kernel.Transform(x)
	rows, d := at.Dims()
	slopes, points := mat.NewDense(rows, d, nil), m.kernel.Prepare(m.hyper.Kernel, at, true)
	m.points.WeightedGradient(slopes, points, mat.NewDense(1, m.Len(), m.alpha))
	points.AddDriftSlopes(slopes)
	return slopes
}

// LeaveOneOut returns, for each observation, how far it lies above what the model
// predicts for it from all the others, at the same hyperparameters, and the
// variance of that prediction, noise included (Rasmussen and Williams, equations
// 5.10 to 5.12; with A the covariance matrix of the observations):
//
//	yᵢ − μᵢ = [A⁻¹y]ᵢ / [A⁻¹]ᵢᵢ,  σᵢ² = 1 / [A⁻¹]ᵢᵢ
func (m *Model) LeaveOneOut() (residual, variance []float64) {
	n := m.Len()
	residual, variance = make([]float64, n), make([]float64, n)
	inverse := linalg.NewColumns(n, n) // L⁻¹, whose columns' squares sum to [A⁻¹]ᵢᵢ
	for i := range n {
		inverse.Data[i*inverse.Stride+i] = 1
	}
	m.factor.SolveL(inverse)
	linalg.AddSquares(variance, inverse)
	for i, precision := range variance {
		residual[i], variance[i] = m.alpha[i]/precision, 1/precision
	}
	return residual, variance
}
