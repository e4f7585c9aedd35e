//go:build !amd64

package linalg

// tile is tileGo.
func tile(terms int, a []float64, byRow, byTerm int, b []float64, stride int, c []float64, cStride int, sign float64) {
	tileGo(terms, a, byRow, byTerm, b, stride, c, cStride, sign)
}
