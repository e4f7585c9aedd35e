package gp

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// Fantasies is a model that is conditioned further, on points that are still being
// evaluated. Each counts with the posterior mean as its value (the kriging believer of
// Ginsbourger et al. 2010): means stay as they are, and variances shrink.
//
// Observations are not added like this: each one changes the transform of all outcomes, so a request begins with a factor of its
// own, and only its pending points extend it.
//
// A point adds a row to the factor in O(n²). With l = L⁻¹k(X, x) and
// d² = k(x, x) + noise − lᵀl, the row is (l, d).
//
// It is not safe for concurrent use.
type Fantasies struct {
	model  *Model
	points []fantasy
}

// fantasy is an added point.
type fantasy struct {
	x      *mat.Dense     // 1×d, transformed
	points *kernel.Points // x, prepared
	row    []float64      // the factor's row without its diagonal: n + points before
	diag   float64
}

// Fantasies returns the model without added points.
func (m *Model) Fantasies() *Fantasies { return &Fantasies{model: m} }

// Believe adds the rows of x with the posterior mean as their value.
func (f *Fantasies) Believe(x mat.Matrix) {
	rows := f.model.kernel.Transform(x)
	n, d := rows.Dims()
	for i := range n {
		f.points = append(f.points, f.prepare(rows.Slice(i, i+1, 0, d).(*mat.Dense)))
	}
}

// prepare computes a new point's row of the factor.
func (f *Fantasies) prepare(x *mat.Dense) fantasy {
	m := f.model
	n, q := m.Len(), len(f.points)
	p := fantasy{x: x, points: m.kernel.Prepare(m.hyper.Kernel, x, false), row: make([]float64, n+q)}
	p.points.Cross(mat.NewDense(1, n, p.row[:n]), m.points)
	m.factor.SolveLVec(p.row[:n])
	between := mat.NewDense(1, 1, nil)
	for j, earlier := range f.points {
		earlier.points.Cross(between, p.points)
		p.row[n+j] = (between.At(0, 0) - floats.Dot(earlier.row, p.row[:n+j])) / earlier.diag
	}
	var prior [1]float64
	p.points.Diag(prior[:])
	variance := prior[0] - floats.Dot(p.row, p.row)
	// The same noise as on the diagonal of the factor, its jitter included: a point added here
	// MUST change the posterior as an observation of its mean would.
	p.diag = math.Sqrt(max(variance, minVariance(prior[0])) + (m.hyper.Noise + m.factor.Jitter()))
	return p
}

// minVariance returns the smallest posterior variance of a point with the given
// prior variance, which may be 0 where a kernel is not stationary. Beside an observation
// the difference of the prior and what is explained is rounding, of either sign, and the
// logarithms and square roots of acquisition functions need a positive number.
func minVariance(prior float64) float64 { return max(1e-12*prior, 1e-150) }

// Posterior returns the posterior mean and variance of the function, without
// observation noise, at the rows of x. Variances are positive as in Model.Posterior.
func (f *Fantasies) Posterior(x mat.Matrix) (mean, variance []float64) {
	return f.Candidates(x).Posterior()
}
