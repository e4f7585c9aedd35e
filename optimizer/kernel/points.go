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
	p.checkKernel(y)
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

// InputGradient sets dst to ∂k(point, p_i)/∂point_c, as Kernel.InputGradient
// does, for the only point of point, which was prepared with slopes.
func (p *Points) InputGradient(dst *mat.Dense, point *Points) {
	if r, c := dst.Dims(); r != p.n || c != p.kernel.Dim() {
		panic(fmt.Sprintf("kernel: input gradient for %d points of %d columns into %d×%d", p.n, p.kernel.Dim(), r, c))
	}
	p.checkKernel(point)
	point.checkSlopes()
	p.kernel.of.inputGradient(dst, point.of, p.of)
}

// DiagGradient sets dst[c] to ∂k(p, p)/∂p_c, as Kernel.DiagGradient does, for the
// only point of p, which was prepared with slopes.
func (p *Points) DiagGradient(dst []float64) {
	p.kernel.checkDim(len(dst))
	p.checkSlopes()
	p.kernel.of.diagGradient(dst, p.of)
}

func (p *Points) checkKernel(other *Points) {
	if p.kernel != other.kernel {
		panic("kernel: points of two kernels")
	}
}

func (p *Points) checkSlopes() {
	if p.n != 1 || !p.slopes {
		panic(fmt.Sprintf("kernel: a gradient at %d points (prepared with slopes: %v), want one, with slopes", p.n, p.slopes))
	}
}
