package kernel

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/warp"
)

// Warped is a kernel beneath which numeric columns are bent, each by a
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
type Warped struct {
	layout
	inner Kernel
}

var _ Kernel = (*Warped)(nil)

// NewWarped returns the kernel over points of the columns. inner must have been
// made with WithoutSnap(columns): the coordinates that it sees are warped ones.
func NewWarped(inner Kernel, columns []Column) *Warped {
	if inner.Dim() != len(columns) {
		panic(fmt.Sprintf("kernel: a kernel over %d columns inside one over %d", inner.Dim(), len(columns)))
	}
	return &Warped{newLayout(columns), inner}
}

// NumParams implements Kernel.
func (k *Warped) NumParams() int { return k.inner.NumParams() + 2*len(k.numeric) }

// NumericColumns returns the columns that are warped, in the order of their
// shapes among the hyperparameters.
func (k *Warped) NumericColumns() []int { return append([]int(nil), k.numeric...) }

// split returns the inner kernel's hyperparameters and the shapes in log space.
func (k *Warped) split(theta []float64) (inner, shapes []float64) {
	checkParams(len(theta), k.NumParams())
	m := k.inner.NumParams()
	return theta[:m], theta[m:]
}

// bend returns the points as the inner kernel sees them.
func (k *Warped) bend(shapes []float64, x *mat.Dense) *mat.Dense {
	n, d := x.Dims()
	k.checkDim(d)
	out := mat.DenseCopyOf(x)
	col := make([]float64, n)
	for i, c := range k.numeric {
		mat.Col(col, c, x)
		warp.Values(col, col, math.Exp(shapes[2*i]), math.Exp(shapes[2*i+1]))
		out.SetCol(c, col)
	}
	return out
}

// Gram implements Kernel.
func (k *Warped) Gram(dst *mat.SymDense, theta []float64, x *mat.Dense) {
	inner, shapes := k.split(theta)
	k.inner.Gram(dst, inner, k.bend(shapes, x))
}

// Cross implements Kernel.
func (k *Warped) Cross(dst *mat.Dense, theta []float64, x, y *mat.Dense) {
	inner, shapes := k.split(theta)
	k.inner.Cross(dst, inner, k.bend(shapes, x), k.bend(shapes, y))
}

// Diag implements Kernel.
func (k *Warped) Diag(dst []float64, theta []float64, x *mat.Dense) {
	inner, shapes := k.split(theta)
	k.inner.Diag(dst, inner, k.bend(shapes, x))
}

// ParamGradient implements Kernel.
func (k *Warped) ParamGradient(dst []float64, theta []float64, x *mat.Dense, w *mat.SymDense) {
	k.gradients(dst, nil, theta, x, w)
}

// PairGradient implements Kernel.
func (k *Warped) PairGradient(dst *mat.Dense, theta []float64, x *mat.Dense, w *mat.SymDense) {
	k.gradients(nil, dst, theta, x, w)
}

// gradients takes the inner kernel's sums through the chain rule: with P its
// PairGradient by the warped coordinates,
//
//	Σ_ij w_ij ∂k/∂log a_c = 2 Σ_i P_ic · a_c ∂w(x_ic)/∂a_c
func (k *Warped) gradients(params []float64, points *mat.Dense, theta []float64, x *mat.Dense, w *mat.SymDense) {
	checkGradients(k.NumParams(), params, points, x, w)
	inner, shapes := k.split(theta)
	n, d := x.Dims()
	b := k.bendWithSlopes(shapes, x)
	if points == nil {
		points = mat.NewDense(n, d, nil)
	}
	var innerParams []float64
	if params != nil {
		innerParams = params[:len(inner)]
	}
	gradients(k.inner, innerParams, points, inner, b.points, w)
	raw := points.RawMatrix()
	for i, c := range k.numeric {
		var byA, byB float64
		for r := range n {
			p := &raw.Data[r*raw.Stride+c]
			byA += *p * b.da[i*n+r]
			byB += *p * b.db[i*n+r]
			*p *= b.dx[i*n+r]
		}
		if params != nil {
			params[len(inner)+2*i] = 2 * math.Exp(shapes[2*i]) * byA
			params[len(inner)+2*i+1] = 2 * math.Exp(shapes[2*i+1]) * byB
		}
	}
}

// bent holds warped points and the derivatives of the warping, the i-th numeric
// column of n points at i·n.
type bent struct {
	points     *mat.Dense
	dx, da, db []float64
}

func (k *Warped) bendWithSlopes(shapes []float64, x *mat.Dense) bent {
	n, d := x.Dims()
	k.checkDim(d)
	size := n * len(k.numeric)
	b := bent{mat.DenseCopyOf(x), make([]float64, size), make([]float64, size), make([]float64, size)}
	col := make([]float64, n)
	for i, c := range k.numeric {
		lo, hi := i*n, (i+1)*n
		mat.Col(col, c, x)
		warp.Gradients(col, b.dx[lo:hi], b.da[lo:hi], b.db[lo:hi], col, math.Exp(shapes[2*i]), math.Exp(shapes[2*i+1]))
		b.points.SetCol(c, col)
	}
	return b
}

// InputGradient implements Kernel.
func (k *Warped) InputGradient(dst *mat.Dense, theta []float64, x *mat.Dense, point []float64) {
	checkInputGradient(dst, x, point)
	inner, shapes := k.split(theta)
	at := k.bendWithSlopes(shapes, mat.NewDense(1, len(point), append([]float64(nil), point...)))
	k.inner.InputGradient(dst, inner, k.bend(shapes, x), at.points.RawRowView(0))
	raw := dst.RawMatrix()
	for c, slope := range k.inputSlopes(at) {
		for i := range raw.Rows {
			raw.Data[i*raw.Stride+c] *= slope
		}
	}
}

// DiagGradient implements Kernel.
func (k *Warped) DiagGradient(dst []float64, theta []float64, point []float64) {
	k.checkDim(len(dst))
	k.checkDim(len(point))
	inner, shapes := k.split(theta)
	at := k.bendWithSlopes(shapes, mat.NewDense(1, len(point), append([]float64(nil), point...)))
	k.inner.DiagGradient(dst, inner, at.points.RawRowView(0))
	for c, slope := range k.inputSlopes(at) {
		dst[c] *= slope
	}
}

// inputSlopes returns ∂w(x_c)/∂x_c of one point, 0 in columns that do not move.
func (k *Warped) inputSlopes(at bent) []float64 {
	slopes := make([]float64, k.Dim())
	for i, c := range k.numeric {
		if k.moves(c) {
			slopes[c] = at.dx[i]
		}
	}
	return slopes
}
