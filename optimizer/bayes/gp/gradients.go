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
	Mean, Variance   []float64
	DMean, DVariance *mat.Dense // m×d
}

// Gradients returns the posterior of the function at the rows of x, as Posterior
// does, with its derivatives. It costs O(n²) a point.
func (f *Fantasies) Gradients(x mat.Matrix) *Gradients {
	c := f.Candidates(x)
	g := &Gradients{}
	g.Mean, g.Variance = c.Posterior()
	m, d := c.x.Dims()
	model := f.model
	at := model.kernel.Prepare(model.hyper.Kernel, c.x, true)
	g.DMean, g.DVariance = mat.NewDense(m, d, nil), mat.NewDense(m, d, nil)
	model.points.WeightedGradient(g.DMean, at, mat.NewDense(1, model.Len(), model.alpha))
	at.AddDriftSlopes(g.DMean)
	explained := f.weightedGradient(at, c.solved())
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
		columns := firstColumns(solved, hi-lo)
		out.Slice(lo, hi, 0, solved.Rows).(*mat.Dense).Copy(columns.T())
	})
	return out
}

// weightedGradient returns Σ_i w_ji ∂k(x_j, x_i)/∂x_j for the points at, given
// weights of all points, a row for each of at.
func (f *Fantasies) weightedGradient(at *kernel.Points, weights *mat.Dense) *mat.Dense {
	n, d := f.model.x.Dims()
	m, all := weights.Dims()
	dst := mat.NewDense(m, d, nil)
	f.model.points.WeightedGradient(dst, at, weights.Slice(0, m, 0, n).(*mat.Dense))
	if len(f.points) == 0 {
		return dst
	}
	pending := mat.NewDense(len(f.points), d, nil)
	for i, p := range f.points {
		pending.SetRow(i, p.x.RawRowView(0))
	}
	more := mat.NewDense(m, d, nil)
	f.model.kernel.Prepare(f.model.hyper.Kernel, pending, false).WeightedGradient(more, at, weights.Slice(0, m, n, all).(*mat.Dense))
	dst.Add(dst, more)
	return dst
}

// solveLT returns the extended factor's L⁻ᵀ times the block's rows.
func (b *candidateBlock) solveLT(f *Fantasies) blas64.General {
	n := b.data.Rows
	out := linalg.NewColumns(n+len(f.points), b.width)
	copy(out.Data, b.data.Data)
	for i, row := range b.more {
		copy(out.Data[(n+i)*out.Stride:], row)
	}
	at := func(i int) []float64 { return out.Data[i*out.Stride : i*out.Stride+out.Cols] }
	for i := len(f.points) - 1; i >= 0; i-- {
		p := f.points[i]
		row := at(n + i)
		floats.Scale(1/p.diag, row)
		for j, l := range p.row {
			floats.AddScaled(at(j), -l, row)
		}
	}
	observed := out
	observed.Rows = n
	f.model.factor.SolveLT(observed)
	return out
}
