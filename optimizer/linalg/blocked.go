package linalg

import "math"

// block is how many rows of the factor are worked on at once: strip by strip,
// so that nearly all work is in products.
const block = 64

// padded returns n filled up to whole strips.
func padded(n int) int { return (n + strip - 1) / strip * strip }

// paddedStride returns a row length of at least n, of whole strips, at which
// successive rows do not fall into the same cache sets.
func paddedStride(n int) int {
	s := padded(n)
	if s%64 == 0 {
		s += strip
	}
	return s
}

// factorize replaces the upper triangle of a, n×n, by U with Uᵀ·U = a, and
// reports whether a is positive definite. n must be of whole strips. What is
// below the diagonal is lost.
func factorize(a matrix, n int) bool {
	for j := 0; j < n; j += block {
		size := min(block, n-j)
		diagonal, above := a.from(j, j), a.from(0, j)
		product{sign: -1, a: above.transposed(), b: above, rows: size, cols: size, terms: j, upper: true}.addTo(diagonal)
		if !factorizeBlock(diagonal, size) {
			return false
		}
		rest := j + size
		Parallel(n-rest, block, func(_, lo, hi int) {
			right := a.from(j, rest+lo)
			product{sign: -1, a: above.transposed(), b: a.from(0, rest+lo), rows: size, cols: hi - lo, terms: j}.addTo(right)
			solveBlockL(diagonal, right, size, hi-lo)
		})
	}
	return true
}

// factorizeBlock is factorize for one block.
func factorizeBlock(a matrix, n int) bool {
	for j := 0; j < n; j += strip {
		diagonal, above := a.from(j, j), a.from(0, j)
		product{sign: -1, a: above.transposed(), b: above, rows: strip, cols: n - j, terms: j}.addTo(diagonal)
		if !factorizeStrip(diagonal) {
			return false
		}
		if rest := n - j - strip; rest > 0 {
			var f stripFactors
			f.forward(diagonal, strip)
			solveRows(&f, diagonal.data, strip, a.stride, strip, rest)
		}
	}
	return true
}

// factorizeStrip is factorize for a matrix of one strip.
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

// solveL replaces b, n×cols, by L⁻¹·b, where u = Lᵀ, given that its rows before
// from, a multiple of block, are zero.
func solveL(u, b matrix, from, n, cols int) {
	for i := from; i < n; i += block {
		size := min(block, n-i)
		product{sign: -1, a: u.from(from, i).transposed(), b: b.from(from, 0), rows: size, cols: cols, terms: i - from}.addTo(b.from(i, 0))
		solveBlockL(u.from(i, i), b.from(i, 0), size, cols)
	}
}

// solveBlockL is solveL for one block.
func solveBlockL(u, b matrix, n, cols int) {
	for i := 0; i < n; i += strip {
		size := min(strip, n-i)
		product{sign: -1, a: u.from(0, i).transposed(), b: b, rows: size, cols: cols, terms: i}.addTo(b.from(i, 0))
		var f stripFactors
		f.forward(u.from(i, i), size)
		solveRows(&f, b.data, i*b.stride, b.stride, size, cols)
	}
}

// solveLT replaces b, n×cols, by L⁻ᵀ·b, where u = Lᵀ.
func solveLT(u, b matrix, n, cols int) {
	for i := (n - 1) / block * block; i >= 0; i -= block {
		size := min(block, n-i)
		rest := i + size
		product{sign: -1, a: u.from(i, rest).plain(), b: b.from(rest, 0), rows: size, cols: cols, terms: n - rest}.addTo(b.from(i, 0))
		solveBlockLT(u.from(i, i), b.from(i, 0), size, cols)
	}
}

// solveBlockLT is solveLT for one block.
func solveBlockLT(u, b matrix, n, cols int) {
	for i := (n - 1) / strip * strip; i >= 0; i -= strip {
		size := min(strip, n-i)
		rest := i + size
		product{sign: -1, a: u.from(i, rest).plain(), b: b.from(rest, 0), rows: size, cols: cols, terms: n - rest}.addTo(b.from(i, 0))
		var f stripFactors
		f.backward(u.from(i, i), size)
		solveRows(&f, b.data, (rest-1)*b.stride, -b.stride, size, cols)
	}
}
