package linalg

import (
	"fmt"

	"gonum.org/v1/gonum/blas/blas64"
)

// AddProduct adds a·b to c. The bits of an element of c depend only on its row of a, its
// column of b and what it was before. c MUST NOT overlap a or b. It panics if the sizes
// do not agree.
func AddProduct(c, a, b blas64.General) {
	if a.Cols != b.Rows || c.Rows != a.Rows || c.Cols != b.Cols {
		panic(fmt.Sprintf("linalg: product of %d×%d and %d×%d added to %d×%d", a.Rows, a.Cols, b.Rows, b.Cols, c.Rows, c.Cols))
	}
	product{
		sign: 1, a: matrix{a.Data, a.Stride}.plain(), b: matrix{b.Data, b.Stride},
		rows: a.Rows, cols: b.Cols, terms: a.Cols,
	}.addTo(matrix{c.Data, c.Stride})
}
