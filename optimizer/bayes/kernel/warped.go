package kernel

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/warp"
)

// NewWarped returns a kernel beneath which numeric columns are bent, each by a
// Kumaraswamy function with shapes a_c and b_c of its own (package warp), so
// that a stationary kernel can fit functions whose smoothness changes across
// the cube:
//
//	k(x, y) = inner(w(x), w(y))
//
// Transform snaps only; the warping, which depends on theta, is part of k.
// Categorical columns pass unchanged.
//
// The hyperparameters are those of the inner kernel, then log a_c and log b_c of
// each numeric column: log a of NumericColumns()[i] is at
// inner.NumParams() + 2i, log b behind it.
//
// inner MUST have been made with WithoutSnap(columns), as it sees warped coordinates.
func NewWarped(inner *Kernel, columns []Column) *Kernel {
	if inner.Dim() != len(columns) {
		panic(fmt.Sprintf("kernel: inner kernel of %d columns in a kernel of %d", inner.Dim(), len(columns)))
	}
	l := newLayout(columns)
	return &Kernel{layout: l, of: &warped{l, inner.of}}
}

type warped struct {
	layout
	inner covariance
}

// bent is warped points.
type bent struct {
	inner prepared
	// The derivatives of the warping by the coordinate and by the logarithms of
	// its shapes: of the j-th numeric column of point i of n at j·n+i. Nil if
	// none were asked for.
	n          int
	dx, da, db []float64
}

func (k *warped) params() int { return k.inner.params() + 2*len(k.numeric) }

func (k *warped) scratch() int { return k.inner.scratch() }

func (k *warped) prepare(theta []float64, x *mat.Dense, slopes bool) prepared {
	n, _ := x.Dims()
	points, column, b := mat.DenseCopyOf(x), make([]float64, n), &bent{n: n}
	if slopes {
		size := n * len(k.numeric)
		memory := make([]float64, 3*size)
		b.dx, b.da, b.db = memory[:size], memory[size:2*size], memory[2*size:]
	}
	inner := k.inner.params()
	for j, c := range k.numeric {
		mat.Col(column, c, x)
		shapeA, shapeB := math.Exp(theta[inner+2*j]), math.Exp(theta[inner+2*j+1])
		if slopes {
			da, db := b.da[j*n:(j+1)*n], b.db[j*n:(j+1)*n]
			warp.Gradients(column, b.dx[j*n:(j+1)*n], da, db, column, shapeA, shapeB)
			for i := range n { // by log a and log b, which theta holds: ∂w/∂log a = a·∂w/∂a
				da[i] *= shapeA
				db[i] *= shapeB
			}
		} else {
			warp.Values(column, column, shapeA, shapeB)
		}
		points.SetCol(c, column)
	}
	b.inner = k.inner.prepare(theta[:inner], points, slopes)
	return b
}

func (k *warped) row(dst []float64, scratch [][]float64, x prepared, i int, y prepared, from int) {
	k.inner.row(dst, scratch, x.(*bent).inner, i, y.(*bent).inner, from)
}

func (k *warped) diag(dst []float64, x prepared) { k.inner.diag(dst, x.(*bent).inner) }

// gradientRow takes the inner kernel's derivatives through the chain rule: with
// P_ic = Σ_j w_ij ∂inner/∂w(x_i)_c,
//
//	Σ_ij w_ij ∂k/∂log a_c = 2 Σ_i P_ic · ∂w(x_ic)/∂log a_c
func (k *warped) gradientRow(sums, point []float64, scratch [][]float64, x prepared, i int, y prepared, weights []float64) {
	b, inner := x.(*bent), k.inner.params()
	k.inner.gradientRow(sums[:inner], point, scratch, b.inner, i, y.(*bent).inner, weights)
	for j, c := range k.numeric {
		p, at := point[c], j*b.n+i
		sums[inner+2*j] += 2 * p * b.da[at]
		sums[inner+2*j+1] += 2 * p * b.db[at]
		point[c] = p * b.dx[at]
	}
}

func (k *warped) diagGradient(dst []float64, x prepared, i int) {
	b := x.(*bent)
	k.inner.diagGradient(dst, b.inner, i)
	for j, c := range k.numeric {
		dst[c] *= b.dx[j*b.n+i]
	}
}
