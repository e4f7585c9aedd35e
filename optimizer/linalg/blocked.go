package linalg

import "math"

// The factor is worked on in blocks of block rows, those in strips of strip
// rows, and the strips row by row, so that nearly all work is in addProduct.
const (
	block = 64
	strip = 8
)

// paddedStride returns a row length of at least n at which successive rows do
// not fall into the same cache sets.
func paddedStride(n int) int {
	s := (n + tileCols - 1) / tileCols * tileCols
	if s%64 == 0 {
		s += tileCols
	}
	return s
}

// factorize replaces the upper triangle of a, n×n, by U with Uᵀ·U = a, and
// reports whether a is positive definite. What is below the diagonal is lost.
func factorize(a matrix, n int) bool {
	for j := 0; j < n; j += block {
		size := min(block, n-j)
		diagonal, above := a.from(j, j), a.from(0, j)
		addProduct(diagonal, -1, above.transposed(), above, size, size, j)
		if !factorizeBlock(diagonal, size) {
			return false
		}
		rest := j + size
		Parallel(n-rest, block, func(_, lo, hi int) {
			right := a.from(j, rest+lo)
			addProduct(right, -1, above.transposed(), a.from(0, rest+lo), size, hi-lo, j)
			solveBlockL(diagonal, right, size, hi-lo)
		})
	}
	return true
}

// factorizeBlock is factorize for one block.
func factorizeBlock(a matrix, n int) bool {
	for j := 0; j < n; j += strip {
		size := min(strip, n-j)
		diagonal, above := a.from(j, j), a.from(0, j)
		addProduct(diagonal, -1, above.transposed(), above, size, n-j, j)
		for i := range size {
			row := diagonal.row(i, n-j)
			for k := range i {
				subtract(row[i:], diagonal.row(k, n-j)[i:], diagonal.data[k*a.stride+i])
			}
			if !(row[i] > 0) || math.IsInf(row[i], 1) {
				return false
			}
			scale(row[i:], 1/math.Sqrt(row[i]))
		}
	}
	return true
}

// solveL replaces b, n×cols, by L⁻¹·b, where u = Lᵀ, given that its rows before
// from, a multiple of block, are zero.
func solveL(u, b matrix, from, n, cols int) {
	for i := from; i < n; i += block {
		size := min(block, n-i)
		addProduct(b.from(i, 0), -1, u.from(from, i).transposed(), b.from(from, 0), size, cols, i-from)
		solveBlockL(u.from(i, i), b.from(i, 0), size, cols)
	}
}

// solveBlockL is solveL for one block.
func solveBlockL(u, b matrix, n, cols int) {
	for i := 0; i < n; i += strip {
		size := min(strip, n-i)
		addProduct(b.from(i, 0), -1, u.from(0, i).transposed(), b, size, cols, i)
		for r := i; r < i+size; r++ {
			row := b.row(r, cols)
			for k := i; k < r; k++ {
				subtract(row, b.row(k, cols), u.data[k*u.stride+r])
			}
			scale(row, 1/u.data[r*u.stride+r])
		}
	}
}

// solveLT replaces b, n×cols, by L⁻ᵀ·b, where u = Lᵀ.
func solveLT(u, b matrix, n, cols int) {
	for i := (n - 1) / block * block; i >= 0; i -= block {
		size := min(block, n-i)
		rest := i + size
		addProduct(b.from(i, 0), -1, u.from(i, rest).plain(), b.from(rest, 0), size, cols, n-rest)
		solveBlockLT(u.from(i, i), b.from(i, 0), size, cols)
	}
}

// solveBlockLT is solveLT for one block.
func solveBlockLT(u, b matrix, n, cols int) {
	for i := (n - 1) / strip * strip; i >= 0; i -= strip {
		size := min(strip, n-i)
		rest := i + size
		addProduct(b.from(i, 0), -1, u.from(i, rest).plain(), b.from(rest, 0), size, cols, n-rest)
		for r := rest - 1; r >= i; r-- {
			row := b.row(r, cols)
			for k := r + 1; k < rest; k++ {
				subtract(row, b.row(k, cols), u.data[r*u.stride+k])
			}
			scale(row, 1/u.data[r*u.stride+r])
		}
	}
}

// subtract subtracts factor·v from dst.
func subtract(dst, v []float64, factor float64) {
	v = v[:len(dst)]
	for i := range dst {
		dst[i] = math.FMA(-factor, v[i], dst[i])
	}
}

func scale(v []float64, factor float64) {
	for i := range v {
		v[i] *= factor
	}
}
