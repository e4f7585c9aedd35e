package linalg

import (
	"fmt"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// SubtractGram subtracts vᵀ·v from dst, n×n. v has a row for each term and at least n
// columns, in the layout of NewColumns.
func SubtractGram(dst *mat.SymDense, v blas64.General) {
	to := dst.RawSymmetric()
	if v.Cols < to.N {
		panic(fmt.Sprintf("linalg: %d columns for a %d×%d matrix", v.Cols, to.N, to.N))
	}
	from := matrix{v.Data, v.Stride}
	Parallel(to.N, grain, func(_, lo, hi int) {
		above := product{sign: -1, a: from.transposed(), b: from.from(0, lo), rows: lo, cols: hi - lo, terms: v.Rows}
		above.addTo(matrix{to.Data[lo:], to.Stride})
		diagonal := product{
			sign: -1, a: from.from(0, lo).transposed(), b: from.from(0, lo), rows: hi - lo, cols: hi - lo, terms: v.Rows, upper: true,
		}
		diagonal.addTo(matrix{to.Data, to.Stride}.from(lo, lo))
	})
}
