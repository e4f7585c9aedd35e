package gp

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// Fantasies is a model that is conditioned further, on points whose values are
// simulated since they are still being evaluated. It holds S draws of the
// values; the draws share one factor, to which a point adds a row in O(n²), and
// so one posterior variance, and differ only in their posterior means.
//
// With l = L⁻¹k(X, x) and d² = k(x, x) + noise − lᵀl, the factor's new row is
// (l, d), and a value that lies z predictive standard deviations above the
// posterior mean adds z to L⁻¹y. A draw thus costs one standard normal number,
// and drawing point after point draws all of them jointly.
//
// It is not safe for concurrent use.
type Fantasies struct {
	model  *Model
	draws  int
	points []fantasy
	serial int            // of the last point ever added, to tell caches what changed
	alpha  blas64.General // (n+q)×S weights of the posterior means; no data when stale
}

// fantasy is an added point.
type fantasy struct {
	serial int
	x      *mat.Dense     // 1×d, transformed
	points *kernel.Points // x, prepared
	row    []float64      // the factor's row without its diagonal: n + points before
	diag   float64
	z      []float64 // for each draw, the value's distance from the mean in predictive standard deviations
	mean   []float64 // for each draw, the posterior mean before the point was added
}

// Fantasies returns the model without added points, for the given number of draws, at
// least 1. Points added by Tell and Believe have the same value in each draw.
func (m *Model) Fantasies(draws int) *Fantasies {
	if draws < 1 {
		panic(fmt.Sprintf("gp: fantasies with %d draws", draws))
	}
	return &Fantasies{model: m, draws: draws}
}

// Draws returns S, the number of draws.
func (f *Fantasies) Draws() int { return f.draws }

// Len returns the number of points added.
func (f *Fantasies) Len() int { return len(f.points) }

// Believe adds the rows of x with the posterior mean as their value (the
// kriging believer of Ginsbourger et al. 2010): means stay as they are, and
// variances shrink.
func (f *Fantasies) Believe(x mat.Matrix) {
	n, _ := x.Dims()
	f.Draw(x, mat.NewDense(n, f.draws, nil))
}

// Draw adds the rows of x with values from their joint posterior, observation
// noise included. z holds independent standard normal numbers, a row for each
// point and a column for each draw. Rows that sum to 0 keep the draws' average
// mean at the posterior mean.
func (f *Fantasies) Draw(x, z mat.Matrix) {
	n, _ := x.Dims()
	if r, c := z.Dims(); r != n || c != f.draws {
		panic(fmt.Sprintf("gp: %d×%d normals for %d points and %d draws", r, c, n, f.draws))
	}
	rows := f.model.kernel.Transform(x)
	for i := range n {
		p := f.prepare(rows.Slice(i, i+1, 0, rows.RawMatrix().Cols).(*mat.Dense))
		mat.Row(p.z, i, z)
		f.push(p)
	}
}

// Tell adds the rows of x with the given values, the same in all draws (a
// constant liar, or an observation that came after the fit).
func (f *Fantasies) Tell(x mat.Matrix, y []float64) {
	n, _ := x.Dims()
	if n != len(y) {
		panic(fmt.Sprintf("gp: %d values for %d points", len(y), n))
	}
	rows := f.model.kernel.Transform(x)
	for i, v := range y {
		p := f.prepare(rows.Slice(i, i+1, 0, rows.RawMatrix().Cols).(*mat.Dense))
		for s := range p.z {
			p.z[s] = (v - p.mean[s]) / p.diag
		}
		f.push(p)
	}
}

// Truncate keeps the first n added points and drops the others, 0 ≤ n ≤ Len.
func (f *Fantasies) Truncate(n int) {
	f.points = f.points[:n]
	f.alpha = blas64.General{}
}

// Values returns the simulated values of the i-th added point, one a draw.
func (f *Fantasies) Values(i int) []float64 {
	p := f.points[i]
	values := append([]float64(nil), p.mean...)
	floats.AddScaled(values, p.diag, p.z)
	return values
}

func (f *Fantasies) push(p fantasy) {
	f.serial++
	p.serial = f.serial
	f.points = append(f.points, p)
	f.alpha = blas64.General{}
}

// prepare computes a new point's row of the factor and its posterior mean.
func (f *Fantasies) prepare(x *mat.Dense) fantasy {
	m := f.model
	n, q := m.Len(), len(f.points)
	p := fantasy{x: x, points: m.kernel.Prepare(m.hyper.Kernel, x, false), row: make([]float64, n+q), z: make([]float64, f.draws), mean: make([]float64, f.draws)}
	p.points.Cross(mat.NewDense(1, n, p.row[:n]), m.points)
	m.factor.SolveLVec(p.row[:n])
	between := mat.NewDense(1, 1, nil)
	base := floats.Dot(p.row[:n], m.beta)
	for s := range p.mean {
		p.mean[s] = base
	}
	for j, earlier := range f.points {
		earlier.points.Cross(between, p.points)
		l := (between.At(0, 0) - floats.Dot(earlier.row, p.row[:n+j])) / earlier.diag
		p.row[n+j] = l
		floats.AddScaled(p.mean, l, earlier.z)
	}
	var prior [1]float64
	p.points.Diag(prior[:])
	variance := prior[0] - floats.Dot(p.row, p.row)
	p.diag = math.Sqrt(max(variance, minVariance(prior[0])) + (m.hyper.Noise + m.factor.Jitter()))
	return p
}

// minVariance returns the smallest posterior variance of a point with the given
// prior variance, which may be 0 where a kernel is not stationary.
func minVariance(prior float64) float64 { return max(1e-12*prior, 1e-150) }

// Posterior returns the posterior of the function, without observation noise,
// at the m rows of x: the mean in each draw, m×S, and the variance, which all
// draws share and which is positive as in Model.Posterior.
func (f *Fantasies) Posterior(x mat.Matrix) (mean *mat.Dense, variance []float64) {
	return f.Candidates(x).Posterior()
}
