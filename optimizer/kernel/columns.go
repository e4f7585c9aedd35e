package kernel

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// Column says what a column of a point holds.
type Column struct {
	// Categorical columns hold the code of a category. Two points differ there
	// by 1 or not at all (the Hamming distance), divided by the column's
	// lengthscale like any other; which codes are used does not matter.
	Categorical bool
	// Snap maps any value of the column to the nearest one that can be
	// evaluated: the unit coordinate of the nearest integer or step, or the
	// code of a category. Snapping twice must be the same as once. Nil for
	// columns that are continuous, and for categorical ones whose codes are
	// always exact.
	Snap func(float64) float64
}

// Continuous returns d columns without steps.
func Continuous(d int) []Column { return make([]Column, d) }

// WithoutSnap returns the columns as a kernel inside Warped sees them, which has
// snapped the points already.
func WithoutSnap(columns []Column) []Column {
	out := make([]Column, len(columns))
	for c, column := range columns {
		out[c].Categorical = column.Categorical
	}
	return out
}

// layout is the columns of a kernel's points.
type layout struct {
	columns     []Column
	numeric     []int // indices of the numeric columns
	categorical []int // indices of the categorical columns
}

func newLayout(columns []Column) layout {
	if len(columns) == 0 {
		panic("kernel: no columns")
	}
	l := layout{columns: append([]Column(nil), columns...)}
	for c, column := range columns {
		if column.Categorical {
			l.categorical = append(l.categorical, c)
		} else {
			l.numeric = append(l.numeric, c)
		}
	}
	return l
}

// Dim implements Kernel.
func (l *layout) Dim() int { return len(l.columns) }

// Transform implements Kernel.
func (l *layout) Transform(x mat.Matrix) *mat.Dense {
	out := mat.DenseCopyOf(x)
	n, d := out.Dims()
	l.checkDim(d)
	for c, column := range l.columns {
		if column.Snap == nil {
			continue
		}
		for i := range n {
			out.Set(i, c, column.Snap(out.At(i, c)))
		}
	}
	return out
}

func (l *layout) checkDim(d int) {
	if d != len(l.columns) {
		panic(fmt.Sprintf("kernel: points of %d columns, want %d", d, len(l.columns)))
	}
}

// moves says whether k changes smoothly with the column's value.
func (l *layout) moves(c int) bool { return !l.columns[c].Categorical && l.columns[c].Snap == nil }

func checkParams(got, want int) {
	if got != want {
		panic(fmt.Sprintf("kernel: %d hyperparameters, want %d", got, want))
	}
}

func checkGram(dst *mat.SymDense, n int) {
	if size := dst.SymmetricDim(); size != n {
		panic(fmt.Sprintf("kernel: Gram of %d points into a matrix of %d rows", n, size))
	}
}

func checkCross(dst, x, y *mat.Dense) (n, m int) {
	n, _ = x.Dims()
	m, _ = y.Dims()
	if r, c := dst.Dims(); r != n || c != m {
		panic(fmt.Sprintf("kernel: Cross of %d and %d points into %d×%d", n, m, r, c))
	}
	return n, m
}

func checkDiag(dst []float64, x *mat.Dense) {
	if n, _ := x.Dims(); n != len(dst) {
		panic(fmt.Sprintf("kernel: diagonal of %d points into %d values", n, len(dst)))
	}
}

func checkInputGradient(dst, x *mat.Dense, point []float64) {
	n, d := x.Dims()
	if r, c := dst.Dims(); r != n || c != d || len(point) != d {
		panic(fmt.Sprintf("kernel: input gradient at a point of %d columns for %d×%d points into %d×%d", len(point), n, d, r, c))
	}
}

// checkGradients checks the destinations of sums over pairs, of which either
// may be nil.
func checkGradients(numParams int, params []float64, points, x *mat.Dense, w *mat.SymDense) {
	n, d := x.Dims()
	if size := w.SymmetricDim(); size != n {
		panic(fmt.Sprintf("kernel: gradient of %d points with %d weights", n, size))
	}
	if params != nil && len(params) != numParams {
		panic(fmt.Sprintf("kernel: gradient of %d hyperparameters into %d values", numParams, len(params)))
	}
	if points == nil {
		return
	}
	if r, c := points.Dims(); r != n || c != d {
		panic(fmt.Sprintf("kernel: gradient of %d×%d points into %d×%d", n, d, r, c))
	}
}
