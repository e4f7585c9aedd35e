package gp

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/linalg"
)

// Gradients are the posterior at m points and its derivatives with respect to
// the points' coordinates. Derivatives are 0 in columns that the kernel snaps.
type Gradients struct {
	Mean      *mat.Dense   // m×S
	Variance  []float64    // m
	DMean     []*mat.Dense // for each draw, m×d
	DVariance *mat.Dense   // m×d
}

// Gradients returns the posterior of the function at the rows of x in each
// draw, as Posterior does, with its derivatives. It costs O(n²) a point.
func (f *Fantasies) Gradients(x mat.Matrix) *Gradients {
	c := f.Candidates(x)
	g := &Gradients{}
	g.Mean, g.Variance = c.Posterior()
	m, d := c.x.Dims()
	g.DMean = make([]*mat.Dense, f.draws)
	for s := range g.DMean {
		g.DMean[s] = mat.NewDense(m, d, nil)
	}
	g.DVariance = mat.NewDense(m, d, nil)
	weights := f.weights()
	linalg.Parallel(m, blockSize(m), func(chunk, lo, hi int) {
		b := &c.blocks[chunk]
		solved := b.solveLT(f)
		dk := mat.NewDense(f.model.Len()+len(f.points), d, nil)
		for j := lo; j < hi; j++ {
			g.differentiate(f, dk, c.x.RawRowView(j), j, column(solved, j-lo), weights)
		}
	})
	return g
}

// differentiate sets the derivatives at the j-th point, given K⁻¹k(X, point)
// and the weights of the posterior means; dk is working memory.
func (g *Gradients) differentiate(f *Fantasies, dk *mat.Dense, point []float64, j int, solved blas64.Vector, weights blas64.General) {
	n, d := f.model.x.Dims()
	at := f.model.kernel.Prepare(f.model.hyper.Kernel, mat.NewDense(1, d, point), true)
	f.model.points.InputGradient(dk.Slice(0, n, 0, d).(*mat.Dense), at)
	for i, p := range f.points {
		p.points.InputGradient(dk.Slice(n+i, n+i+1, 0, d).(*mat.Dense), at)
	}
	dv := g.DVariance.RawRowView(j)
	at.DiagGradient(dv)
	blas64.Gemv(blas.Trans, -2, dk.RawMatrix(), solved, 1, blas64.Vector{N: len(dv), Inc: 1, Data: dv})
	for s, dMean := range g.DMean {
		dm := dMean.RawRowView(j)
		blas64.Gemv(blas.Trans, 1, dk.RawMatrix(), column(weights, s), 0, blas64.Vector{N: len(dm), Inc: 1, Data: dm})
	}
}

func column(m blas64.General, j int) blas64.Vector {
	return blas64.Vector{N: m.Rows, Inc: m.Stride, Data: m.Data[j:]}
}

// solveLT returns the extended factor's L⁻ᵀ times the block's rows.
func (b *candidateBlock) solveLT(f *Fantasies) blas64.General {
	n := b.data.Rows
	out := linalg.NewColumns(n+len(f.points), b.width)
	copy(out.Data, b.data.Data)
	for i, row := range b.more {
		copy(out.Data[(n+i)*out.Stride:], row)
	}
	f.backSubstitute(out)
	return out
}

// backSubstitute replaces b, (n+q)×w, by the extended factor's L⁻ᵀ times b.
func (f *Fantasies) backSubstitute(b blas64.General) {
	n := f.model.Len()
	at := func(i int) []float64 { return b.Data[i*b.Stride : i*b.Stride+b.Cols] }
	for i := len(f.points) - 1; i >= 0; i-- {
		p := f.points[i]
		row := at(n + i)
		floats.Scale(1/p.diag, row)
		for j, l := range p.row {
			floats.AddScaled(at(j), -l, row)
		}
	}
	b.Rows = n
	f.model.factor.SolveLT(b)
}

// weights returns, for each draw, the vector α of (n+q) weights with which the
// posterior mean at x is Σ_i α_i k(x_i, x).
func (f *Fantasies) weights() blas64.General {
	if f.alpha.Data != nil {
		return f.alpha
	}
	n := f.model.Len()
	a := linalg.NewColumns(n+len(f.points), f.draws)
	for i, p := range f.points {
		copy(a.Data[(n+i)*a.Stride:], p.z)
	}
	if len(f.points) > 0 {
		f.backSubstitute(a)
	}
	for i, base := range f.model.alpha {
		floats.AddConst(base, a.Data[i*a.Stride:i*a.Stride+f.draws])
	}
	f.alpha = a
	return a
}
