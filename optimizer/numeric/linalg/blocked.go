package linalg

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/vecmath"
)

// block is the number of rows of the factor that are processed at once, strip by strip,
// so that nearly all work is in products.
const block = 128

// grain is the number of columns that a goroutine takes at a time; it divides block.
const grain = 64

// padded rounds n up to whole strips.
func padded(n int) int { return (n + strip - 1) / strip * strip }

// paddedStride returns a row length of at least n, in whole strips, at which successive
// rows fall into different cache sets.
func paddedStride(n int) int {
	s := padded(n)
	if s%64 == 0 {
		s += strip
	}
	return s
}

// factor is a triangular matrix L: upper is Lᵀ, padded to whole strips; forward and
// backward hold the factors of each strip of L and Lᵀ.
type factor struct {
	upper             matrix
	forward, backward []stripFactors
}

// block returns the strips of the block that begins at row i and ends before n.
func (f factor) block(i, n int) factor {
	lo, hi := i/strip, padded(min(n, i+block))/strip
	return factor{f.upper.from(i, i), f.forward[lo:hi], f.backward[lo:hi]}
}

// factorize replaces the upper triangle of f, n×n, by U with Uᵀ·U = f, and reports
// whether f is positive definite. n MUST be a multiple of strip. What is below the
// diagonal is lost.
func (f factor) factorize(n int) bool {
	for j := 0; j < n; j += block {
		size := min(block, n-j)
		diagonal, above := f.block(j, n), f.upper.from(0, j)
		product{sign: -1, a: above.transposed(), b: above, rows: size, cols: size, terms: j, upper: true}.addTo(diagonal.upper)
		if !diagonal.factorizeBlock(size) {
			return false
		}
		rest := j + size
		Parallel(n-rest, grain, func(_, lo, hi int) {
			right := f.upper.from(j, rest+lo)
			product{sign: -1, a: above.transposed(), b: f.upper.from(0, rest+lo), rows: size, cols: hi - lo, terms: j}.addTo(right)
			diagonal.solveBlockL(right, 0, size, hi-lo)
		})
	}
	return true
}

// factorizeBlock is factorize for one block.
func (f factor) factorizeBlock(n int) bool {
	for j := 0; j < n; j += strip {
		diagonal, above := f.upper.from(j, j), f.upper.from(0, j)
		product{sign: -1, a: above.transposed(), b: above, rows: strip, cols: n - j, terms: j}.addTo(diagonal)
		if !factorizeStrip(diagonal) {
			return false
		}
		s := j / strip
		f.forward[s].forward(diagonal)
		f.backward[s].backward(diagonal)
		if rest := n - j - strip; rest > 0 {
			solveRows(&f.forward[s], diagonal.data, strip, diagonal.stride, 0, strip, rest)
		}
	}
	return true
}

// factorizeStrip is factorize for one strip, without the strip's factors.
func factorizeStrip(a matrix) bool {
	for i := range strip {
		row := a.row(i, strip)[i:]
		for k := range i {
			above := a.row(k, strip)[i:]
			subtract(row, above, above[0])
		}
		if !(row[0] > 0) || math.IsInf(row[0], 1) {
			return false
		}
		scale(row, 1/math.Sqrt(row[0]))
	}
	return true
}

// logDiagonal returns the sum of the logarithms of the first n diagonal elements. n
// MUST be a multiple of strip.
func (f factor) logDiagonal(n int) (sum float64) {
	for i := 0; i < n; i += strip {
		var diagonal [strip]float64
		for p := range diagonal {
			diagonal[p] = f.upper.data[(i+p)*(f.upper.stride+1)]
		}
		vecmath.Log(diagonal[:], diagonal[:])
		for _, v := range diagonal {
			sum += v
		}
	}
	return sum
}

// solveL replaces b, n×cols, by L⁻¹·b.
func (f factor) solveL(b matrix, n, cols int) { f.solveBelow(b, 0, 0, n, cols) }

// solveBelow is solveL from row lo on, where earlier rows are solved, and rows before
// from are zero. Both are multiples of strip.
func (f factor) solveBelow(b matrix, from, lo, n, cols int) {
	for i := lo; i < n; i += block {
		size := min(block, n-i)
		product{sign: -1, a: f.upper.from(from, i).transposed(), b: b.from(from, 0), rows: size, cols: cols, terms: i - from}.addTo(b.from(i, 0))
		f.block(i, n).solveBlockL(b.from(i, 0), 0, size, cols)
	}
}

// solveBlockL is solveL for one block, whose rows before from are zero.
func (f factor) solveBlockL(b matrix, from, n, cols int) {
	for i := from; i < n; i += strip {
		size := min(strip, n-i)
		product{
			sign: -1, a: f.upper.from(from, i).transposed(), b: b.from(from, 0),
			rows: size, cols: cols, terms: i - from,
		}.addTo(b.from(i, 0))
		solveRows(&f.forward[i/strip], b.data, i*b.stride, b.stride, 0, size, cols)
	}
}

// solveLT replaces b, n×cols, by L⁻ᵀ·b.
func (f factor) solveLT(b matrix, n, cols int) {
	for i := (n - 1) / block * block; i >= 0; i -= block {
		size := min(block, n-i)
		rest := i + size
		product{sign: -1, a: f.upper.from(i, rest).plain(), b: b.from(rest, 0), rows: size, cols: cols, terms: n - rest}.addTo(b.from(i, 0))
		f.block(i, n).solveBlockLT(b.from(i, 0), size, cols)
	}
}

// solveBlockLT is solveLT for one block.
func (f factor) solveBlockLT(b matrix, n, cols int) {
	for i := (n - 1) / strip * strip; i >= 0; i -= strip {
		size := min(strip, n-i)
		rest := i + size
		product{sign: -1, a: f.upper.from(i, rest).plain(), b: b.from(rest, 0), rows: size, cols: cols, terms: n - rest}.addTo(b.from(i, 0))
		solveRows(&f.backward[i/strip], b.data, (i+strip-1)*b.stride, -b.stride, strip-size, strip, cols)
	}
}

// invert sets the lower triangle of inverse, n×n, to that of L⁻¹. Above the diagonal it
// only zeroes the squares of grain columns on the diagonal. n MUST be a multiple of
// strip.
func (f factor) invert(inverse matrix, n int) {
	Parallel(n, grain, func(_, lo, hi int) {
		for i := lo; i < n; i++ {
			row := inverse.from(i, lo).row(0, hi-lo)
			clear(row)
			if i < hi {
				row[i-lo] = 1
			}
		}
		diagonal := f.block(lo, n)
		for j := lo; j < hi; j += tileCols { // zero before row j
			diagonal.solveBlockL(inverse.from(lo, j), j-lo, hi-lo, min(tileCols, hi-j))
		}
		f.solveBelow(inverse.from(0, lo), lo, hi, n, hi-lo)
	})
}

// square sets the upper triangle of dst, n×n, to that of aᵀ·a for the lower
// triangular a that invert sets.
func square(dst, a matrix, n int) {
	Parallel(n, grain, func(_, lo, hi int) {
		for i := 0; i < hi; i += grain {
			size := min(grain, n-i)
			to := dst.from(i, lo)
			for r := range size {
				clear(to.row(r, hi-lo))
			}
			for j := lo; j < hi; j += tileCols { // zero before row j
				product{
					sign: 1, a: a.from(j, i).transposed(), b: a.from(j, j),
					rows: min(size, j+tileCols-i), cols: min(tileCols, hi-j), terms: hi - j,
				}.addTo(to.from(0, j-lo))
			}
			product{
				sign: 1, a: a.from(hi, i).transposed(), b: a.from(hi, lo),
				rows: size, cols: hi - lo, terms: n - hi, upper: i == lo,
			}.addTo(to)
		}
	})
}
