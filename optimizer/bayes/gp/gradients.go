package gp

import (
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
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
	at := f.model.kernel.Prepare(f.model.hyper.Kernel, c.x, true)
	means := f.weights()
	for s := range f.draws {
		one := mat.NewDense(1, means.Rows, nil)
		mat.Col(one.RawRowView(0), s, general(means))
		g.DMean = append(g.DMean, f.weightedGradient(at, m, one))
	}
	explained := f.weightedGradient(at, m, c.solved())
	g.DVariance = mat.NewDense(m, d, nil)
	at.DiagGradient(g.DVariance)
	for j := range m {
		floats.AddScaled(g.DVariance.RawRowView(j), -2, explained.RawRowView(j))
	}
	return g
}

// solved returns K⁻¹k(X, ·), over all points, as a row for each candidate.
func (c *Candidates) solved() *mat.Dense {
	f, m := c.fantasies, len(c.mean)
	out := mat.NewDense(m, f.model.Len()+len(f.points), nil)
	linalg.Parallel(m, blockSize(m), func(chunk, lo, hi int) {
		solved := c.blocks[chunk].solveLT(f)
		out.Slice(lo, hi, 0, solved.Rows).(*mat.Dense).Copy(general(solved).Slice(0, solved.Rows, 0, hi-lo).T())
	})
	return out
}

// weightedGradient returns Σ_i w_ji ∂k(x_j, x_i)/∂x_j for the m points at, given
// weights of all points, a row for each of at or one for all.
func (f *Fantasies) weightedGradient(at *kernel.Points, m int, weights *mat.Dense) *mat.Dense {
	n, d := f.model.x.Dims()
	rows, all := weights.Dims()
	dst := mat.NewDense(m, d, nil)
	f.model.points.WeightedGradient(dst, at, weights.Slice(0, rows, 0, n).(*mat.Dense))
	if len(f.points) == 0 {
		return dst
	}
	pending := mat.NewDense(len(f.points), d, nil)
	for i, p := range f.points {
		pending.SetRow(i, p.x.RawRowView(0))
	}
	more := mat.NewDense(m, d, nil)
	f.model.kernel.Prepare(f.model.hyper.Kernel, pending, false).WeightedGradient(more, at, weights.Slice(0, rows, n, all).(*mat.Dense))
	dst.Add(dst, more)
	return dst
}

// general returns a view of the matrix.
func general(m blas64.General) *mat.Dense {
	var view mat.Dense
	view.SetRawMatrix(m)
	return &view
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
