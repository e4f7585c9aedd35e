package linalg

import "math"

// The products here are sums of fused multiply-adds in a fixed order: element
// (i, j) of a product adds its terms in the order of k, in runs of depth terms,
// whatever the tile it falls in, the core that computes it, and whether that
// has vector instructions. Their bits depend on the matrices alone.
const (
	tileRows = 4
	tileCols = 8
	// depth terms of a tile's rows and columns fit the first-level cache.
	depth = 128
)

// matrix is a view of a row-major matrix: element (i, j) is data[i*stride+j].
type matrix struct {
	data   []float64
	stride int
}

// from returns the view whose (0, 0) is m's (i, j).
func (m matrix) from(i, j int) matrix {
	// An empty view may lie beyond the data.
	return matrix{m.data[min(i*m.stride+j, len(m.data)):], m.stride}
}

// row returns the first n elements of row i.
func (m matrix) row(i, n int) []float64 { return m.data[i*m.stride:][:n] }

// leftFactor is the left factor of a product: element (i, k) is
// data[i*byRow+k*byTerm], so that it may be transposed.
type leftFactor struct {
	data          []float64
	byRow, byTerm int
}

func (m matrix) plain() leftFactor      { return leftFactor{m.data, m.stride, 1} }
func (m matrix) transposed() leftFactor { return leftFactor{m.data, 1, m.stride} }

// addProduct adds sign·a·b to c, where a is rows×terms, b is terms×cols, and
// sign is 1 or −1.
func addProduct(c matrix, sign float64, a leftFactor, b matrix, rows, cols, terms int) {
	if rows == 0 || cols == 0 {
		return
	}
	for k := 0; k < terms; k += depth {
		run := min(depth, terms-k)
		ak := leftFactor{a.data[k*a.byTerm:], a.byRow, a.byTerm}
		bk := b.from(k, 0)
		fullRows, fullCols := rows/tileRows*tileRows, cols/tileCols*tileCols
		for j := 0; j < fullCols; j += tileCols {
			for i := 0; i < fullRows; i += tileRows {
				tile(run, ak.data[i*a.byRow:], a.byRow, a.byTerm, bk.data[j:], b.stride, c.data[i*c.stride+j:], c.stride, sign)
			}
		}
		addEdge(c, sign, ak, bk, 0, fullRows, fullCols, cols, run)
		addEdge(c, sign, ak, bk, fullRows, rows, 0, cols, run)
	}
}

// addEdge is addProduct for rows i0…i1−1 and columns j0…j1−1, one by one.
func addEdge(c matrix, sign float64, a leftFactor, b matrix, i0, i1, j0, j1, terms int) {
	for i := i0; i < i1; i++ {
		for j := j0; j < j1; j++ {
			var sum float64
			for k := range terms {
				sum = math.FMA(a.data[i*a.byRow+k*a.byTerm], b.data[k*b.stride+j], sum)
			}
			c.data[i*c.stride+j] = math.FMA(sign, sum, c.data[i*c.stride+j])
		}
	}
}

// tileGo adds sign·a·b to the 4×8 tile c, for factors of the given number of
// terms, at least 1.
func tileGo(terms int, a []float64, byRow, byTerm int, b []float64, stride int, c []float64, cStride int, sign float64) {
	var sums [tileRows][tileCols]float64
	for k := range terms {
		row := b[k*stride:][:tileCols]
		for i := range tileRows {
			v := a[i*byRow+k*byTerm]
			for j, w := range row {
				sums[i][j] = math.FMA(v, w, sums[i][j])
			}
		}
	}
	for i := range tileRows {
		row := c[i*cStride:][:tileCols]
		for j := range row {
			row[j] = math.FMA(sign, sums[i][j], row[j])
		}
	}
}
