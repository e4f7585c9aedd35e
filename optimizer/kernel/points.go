package kernel

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/linalg"
)

// Points are points that Kernel.Prepare returned, with the kernel and its
// hyperparameters. They are immutable and safe for concurrent use. Points of
// different kernels or hyperparameters do not go together.
type Points struct {
	kernel *driver
	n      int
	slopes bool
	of     prepared
}

// Cross sets dst to k(p_i, y_j), as Kernel.Cross does.
func (p *Points) Cross(dst *mat.Dense, y *Points) {
	if r, c := dst.Dims(); r != p.n || c != y.n {
		panic(fmt.Sprintf("kernel: Cross of %d and %d points into %d×%d", p.n, y.n, r, c))
	}
	p.check(y)
	k, raw := p.kernel, dst.RawMatrix()
	spaces := k.newWorkspaces(y.n)
	linalg.Parallel(p.n, rowGrain, func(_, lo, hi int) {
		work := spaces.take()
		defer spaces.give(work)
		for i := lo; i < hi; i++ {
			k.wholeVectors(raw.Data[i*raw.Stride:i*raw.Stride+y.n], work, p.of, i, y.of, 0)
		}
	})
}

// Diag sets dst[i] to k(p_i, p_i).
func (p *Points) Diag(dst []float64) {
	if len(dst) != p.n {
		panic(fmt.Sprintf("kernel: diagonal of %d points into %d values", p.n, len(dst)))
	}
	p.kernel.of.diag(dst, p.of)
}

// WeightedGradient sets dst, m×Dim, to Σ_i w_ji ∂k(y_j, p_i)/∂(y_j)_c for the m
// points y, which were prepared with slopes. weights has a row for each of y, or
// one for all of them. Derivatives are 0 in columns that the kernel snaps, where
// k is a step function, and in categorical ones.
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
		work := spaces.take()
		defer spaces.give(work)
		params := make([]float64, k.NumParams()) // of no use here
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

func (p *Points) check(other *Points) {
	if p.kernel != other.kernel {
		panic("kernel: points of two kernels")
	}
}

func (p *Points) checkGradient(dst *mat.Dense) {
	if r, c := dst.Dims(); r != p.n || c != p.kernel.Dim() {
		panic(fmt.Sprintf("kernel: gradients at %d points of %d columns into %d×%d", p.n, p.kernel.Dim(), r, c))
	}
	if !p.slopes {
		panic("kernel: gradients at points that were prepared without slopes")
	}
}
