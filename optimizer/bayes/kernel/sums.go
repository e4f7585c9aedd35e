package kernel

import (
	"fmt"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
)

// ParamGradient sets dst[p] to Σ_ij w_ij ∂k(x_i, x_j)/∂theta_p for each hyperparameter p
// and points x that were prepared with slopes: the trace of w·∂K/∂theta_p, which is what
// the gradient of a likelihood needs.
func (p *Points) ParamGradient(dst []float64, w *mat.SymDense) {
	k, n := p.kernel, p.n
	if len(dst) != k.NumParams() {
		panic(fmt.Sprintf("kernel: gradient of %d hyperparameters into %d values", k.NumParams(), len(dst)))
	}
	p.checkSlopes()
	if size := w.SymmetricDim(); size != n {
		panic(fmt.Sprintf("kernel: gradient of %d points with %d weights", n, size))
	}
	width, spaces := len(dst), k.newWorkspaces(n)
	// Each chunk has sums of its own, which are added in the chunks' order below: the result is the same
	// bit for bit, however many processors there are, and an optimiser must repeat its answers.
	partial := make([]float64, linalg.Chunks(n, rowGrain)*width)
	linalg.Parallel(n, rowGrain, func(chunk, lo, hi int) {
		work := spaces.Get().(*workspace)
		defer spaces.Put(work)
		sums, point := partial[chunk*width:(chunk+1)*width], work.row[:k.Dim()] // point is not used here
		weights, stride := work.symmetricRows(w, lo, hi)
		for i := lo; i < hi; i++ {
			k.of.gradientRow(sums, point, work.scratch, p.of, i, p.of, weights[(i-lo)*stride:][:padded(n)])
		}
	})
	clear(dst)
	for ; len(partial) > 0; partial = partial[width:] {
		floats.Add(dst, partial[:width])
	}
}

// WeightedGradient sets dst, m×Dim, to Σ_i w_ji ∂k(y_j, p_i)/∂(y_j)_c for the m points
// y, which were prepared with slopes. weights has a row for each point of y, or one for
// all of them. Derivatives are 0 in categorical columns and in columns that the kernel
// snaps, where k is a step function.
func (p *Points) WeightedGradient(dst *mat.Dense, y *Points, weights *mat.Dense) {
	k := p.kernel
	p.check(y)
	y.checkGradient(dst)
	rows, columns := weights.Dims()
	if rows != 1 && rows != y.n || columns != p.n {
		panic(fmt.Sprintf("kernel: %d×%d weights between %d and %d points", rows, columns, y.n, p.n))
	}
	spaces := k.newWorkspaces(p.n)
	linalg.Parallel(y.n, rowGrain, func(_, lo, hi int) {
		work := spaces.Get().(*workspace)
		defer spaces.Put(work)
		params := make([]float64, k.NumParams()) // not used here
		for j := lo; j < hi; j++ {
			clear(work.row)
			copy(work.row, weights.RawRowView(j%rows))
			point := dst.RawRowView(j)
			k.of.gradientRow(params, point, work.scratch, y.of, j, p.of, work.row[:padded(p.n)])
			k.hold(point)
		}
	})
}

// DiagGradient sets dst, n×Dim, to ∂k(p_i, p_i)/∂(p_i)_c for the n points p, which
// were prepared with slopes. It has the zeros of WeightedGradient.
func (p *Points) DiagGradient(dst *mat.Dense) {
	p.checkGradient(dst)
	for i := range p.n {
		point := dst.RawRowView(i)
		p.kernel.of.diagGradient(point, p.of, i)
		p.kernel.hold(point)
	}
}

func (p *Points) checkGradient(dst *mat.Dense) {
	if r, c := dst.Dims(); r != p.n || c != p.kernel.Dim() {
		panic(fmt.Sprintf("kernel: gradients by %d points of %d columns into %d×%d", p.n, p.kernel.Dim(), r, c))
	}
	p.checkSlopes()
}
