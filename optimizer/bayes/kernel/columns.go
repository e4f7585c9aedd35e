package kernel

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// Column describes a column of points.
type Column struct {
	// Categorical columns hold the code of a category. Two points differ there by 1 or
	// not at all (the Hamming distance), divided by the column's lengthscale like any
	// other; the codes themselves do not matter.
	Categorical bool
	// Snap maps any value of the column to the nearest one that can be evaluated: the
	// unit coordinate of the nearest integer or step, or the code of a category. It
	// must be idempotent. It is nil for continuous columns, and for categorical ones
	// whose codes are always exact.
	Snap func(float64) float64
}

// Continuous returns d columns without steps.
func Continuous(d int) []Column { return make([]Column, d) }

// WithoutSnap returns the columns for a kernel inside Warped, which has already snapped
// the points.
func WithoutSnap(columns []Column) []Column {
	out := make([]Column, len(columns))
	for c, column := range columns {
		out[c].Categorical = column.Categorical
	}
	return out
}

// layout describes the columns of a kernel's points.
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

// Transform returns the points as the kernel sees them: stepped and categorical columns
// snapped to their values. It does not change x. Transforming a second time changes
// nothing.
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

// hold clears a point's derivatives with respect to snapped columns. k is constant around a point there,
// and a local search that followed the derivative of the unrounded kernel would move to places that are
// evaluated as the one where it began (Garrido-Merchán and Hernández-Lobato 2020).
func (l *layout) hold(gradient []float64) {
	for c, column := range l.columns {
		if column.Snap != nil {
			gradient[c] = 0
		}
	}
}
