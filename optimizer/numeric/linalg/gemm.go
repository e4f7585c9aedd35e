package linalg

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// The products here are sums of fused multiply-adds in a fixed order: element (i, j) of
// a product adds its terms in the order of k, in runs of depth terms. Neither the tile,
// the core nor vector instructions change that order, so the bits depend only on the
// matrices.
const (
	// A tile is tileRows×tileCols, or its left half. Its sums fill half of the
	// registers of processors with AVX-512.
	tileRows = 8
	tileCols = 16
	halfCols = tileCols / 2
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

// leftFactor is the left factor of a product. Element (i, k) is data[i*byRow+k*byTerm],
// so it may be transposed.
type leftFactor struct {
	data          []float64
	byRow, byTerm int
}

func (m matrix) plain() leftFactor      { return leftFactor{m.data, m.stride, 1} }
func (m matrix) transposed() leftFactor { return leftFactor{m.data, 1, m.stride} }

// product is sign·a·b, where a is rows×terms, b is terms×cols, and sign is 1 or −1.
// With upper, elements below the diagonal need not be correct.
type product struct {
	sign              float64
	a                 leftFactor
	b                 matrix
	rows, cols, terms int
	upper             bool
}

// addTo adds the product to c.
func (p product) addTo(c matrix) {
	if p.rows == 0 || p.cols == 0 {
		return
	}
	for k := 0; k < p.terms; k += depth {
		for j := 0; j < p.cols; j += tileCols {
			panel := product{
				sign: p.sign, a: leftFactor{p.a.data[k*p.a.byTerm:], p.a.byRow, p.a.byTerm}, b: p.b.from(k, j),
				rows: p.rows, cols: min(tileCols, p.cols-j), terms: min(depth, p.terms-k),
			}
			if p.upper {
				panel.rows = min(panel.rows, j+panel.cols)
			}
			if panel.rows > tileRows || panel.cols%halfCols != 0 {
				panel.addPackedTo(c.from(0, j))
			} else {
				panel.addPanelTo(c.from(0, j))
			}
		}
	}
}

// addPackedTo is addPanelTo with a copy of b whose rows are contiguous and padded to a
// tile's width.
func (p product) addPackedTo(c matrix) {
	var packed [depth * tileCols]float64
	if p.cols == tileCols {
		for k := range p.terms {
			*(*[tileCols]float64)(packed[k*tileCols:]) = *(*[tileCols]float64)(p.b.data[k*p.b.stride:])
		}
	} else {
		for k := range p.terms {
			copy(packed[k*tileCols:], p.b.row(k, p.cols))
		}
	}
	p.b = matrix{packed[:], tileCols}
	p.addPanelTo(c)
}

// addPanelTo is addTo for at most tileCols columns and depth terms. b must have
// tileCols columns, or tileCols/2 if that is enough.
func (p product) addPanelTo(c matrix) {
	width := halfCols
	if p.cols > halfCols {
		width = tileCols
	}
	for i := 0; i < p.rows; i += tileRows {
		a := leftFactor{p.a.data[i*p.a.byRow:], p.a.byRow, p.a.byTerm}
		if rows := min(tileRows, p.rows-i); rows < tileRows || p.cols < width {
			edge := product{sign: p.sign, a: a, b: p.b, rows: rows, cols: p.cols, terms: p.terms}
			edge.addEdgeTo(c.from(i, 0), width)
			continue
		}
		tile(width, p.terms, a, p.b, c.from(i, 0), p.sign)
	}
}

// addEdgeTo is addTo for a part of one tile of the given width.
func (p product) addEdgeTo(c matrix, width int) {
	var sums [tileRows * tileCols]float64
	for i := range p.rows {
		copy(sums[i*tileCols:], c.row(i, p.cols))
	}
	if p.rows < tileRows {
		p.addShortTo(&sums, width)
	} else {
		tile(width, p.terms, p.a, p.b, matrix{sums[:], tileCols}, p.sign)
	}
	for i := range p.rows {
		copy(c.row(i, p.cols), sums[i*tileCols:])
	}
}

// addShortTo adds a product of fewer than tileRows rows to a tile.
func (p product) addShortTo(c *[tileRows * tileCols]float64, width int) {
	var left [depth * tileRows]float64
	for k := range p.terms {
		for i := range p.rows {
			left[k*tileRows+i] = p.a.data[i*p.a.byRow+k*p.a.byTerm]
		}
	}
	tile(width, p.terms, leftFactor{left[:], 1, tileRows}, p.b, matrix{c[:], tileCols}, p.sign)
}

// tileGo adds sign·a·b to the tile c of the given width, for factors of the
// given number of terms, at least 1.
func tileGo(width, terms int, a leftFactor, b, c matrix, sign float64) {
	var sums [tileRows][tileCols]float64
	for k := range terms {
		row := b.row(k, width)
		for i := range tileRows {
			v := a.data[i*a.byRow+k*a.byTerm]
			for j, w := range row {
				sums[i][j] = math.FMA(v, w, sums[i][j])
			}
		}
	}
	for i := range tileRows {
		row := c.row(i, width)
		for j := range row {
			row[j] = math.FMA(sign, sums[i][j], row[j])
		}
	}
}

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
