package linalg

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// ErrNotPositiveDefinite means that a matrix has no Cholesky factorisation even with
// the largest jitter on its diagonal.
var ErrNotPositiveDefinite = errors.New("the matrix is not positive definite")

const (
	// The jitter starts a little above the rounding error of a sum of a thousand terms
	// and stops where it would change a model visibly.
	firstJitter = 1e-12
	lastJitter  = 1e-3
)

// Cholesky is the factor L of A + jitter·I = L·Lᵀ, with values derived from it. It is
// safe for concurrent use except for Factorize and Inverse.
type Cholesky struct {
	n       int
	factor  factor // padded to whole strips by ones on the diagonal
	logDet  float64
	jitter  float64
	scratch matrix // Inverse's L⁻¹
}

// Factorize sets c to the factor of a, n×n, which it does not change, and reuses c's
// memory if it suffices. If rounding has made a not quite positive definite, Factorize
// adds the smallest sufficient jitter to the diagonal: 1e-12, 1e-11, …, or 1e-3 times
// the mean diagonal element; Jitter returns it. The error wraps ErrNotPositiveDefinite.
func (c *Cholesky) Factorize(a *mat.SymDense) error {
	raw := a.RawSymmetric()
	n := raw.N
	c.n = n
	c.factor = c.factor.reuse(n)
	var mean float64
	for i := range n {
		mean += raw.Data[i*raw.Stride+i] / float64(n)
	}
	for relative := 0.0; relative <= lastJitter; relative = max(firstJitter, 10*relative) {
		if c.try(raw, relative*mean) {
			return nil
		}
	}
	return fmt.Errorf(
		"factorise a %d×%d matrix of mean diagonal %g: %w even with %g of it added", n, n, mean, ErrNotPositiveDefinite, lastJitter,
	)
}

// reuse returns a factor of n rows in f's memory if it suffices.
func (f factor) reuse(n int) factor {
	f.upper = reuse(f.upper, n)
	strips := padded(n) / strip
	if cap(f.forward) < strips {
		f.forward, f.backward = make([]stripFactors, strips), make([]stripFactors, strips)
	}
	f.forward, f.backward = f.forward[:strips], f.backward[:strips]
	return f
}

// reuse returns a matrix with at least n rows and columns, padded to whole strips, in
// m's memory if it suffices.
func reuse(m matrix, n int) matrix {
	stride := paddedStride(n)
	size := padded(n) * stride
	if cap(m.data) < size {
		return matrix{make([]float64, size), stride}
	}
	return matrix{m.data[:size], stride}
}

func (c *Cholesky) try(a blas64.Symmetric, jitter float64) bool {
	full := padded(c.n)
	for i := range full {
		row := c.factor.upper.row(i, full)
		if i < c.n {
			copy(row[i:], a.Data[i*a.Stride+i:i*a.Stride+c.n])
			row[i] += jitter
			clear(row[c.n:])
		} else {
			clear(row[i:])
			row[i] = 1
		}
	}
	if !c.factor.factorize(full) {
		return false
	}
	c.jitter, c.logDet = jitter, 2*c.factor.logDiagonal(full)
	return true
}

// LogDet returns log |A + jitter·I|.
func (c *Cholesky) LogDet() float64 { return c.logDet }

// Jitter returns the value that was added to the diagonal.
func (c *Cholesky) Jitter() float64 { return c.jitter }

// NewColumns returns a zero matrix of at least the given number of columns, in the
// layout that is fastest for SolveL and SolveLT: the columns are padded to a multiple
// of 8, and rows do not compete for cache sets.
func NewColumns(rows, cols int) blas64.General {
	stride := paddedStride(cols)
	return blas64.General{Rows: rows, Cols: padded(cols), Stride: stride, Data: make([]float64, rows*stride)}
}

// SolveL replaces the n×m matrix b by L⁻¹·b.
func (c *Cholesky) SolveL(b blas64.General) {
	c.checkRows(b.Rows)
	Parallel(b.Cols, grain, func(_, lo, hi int) {
		c.factor.solveL(matrix{b.Data[lo:], b.Stride}, c.n, hi-lo)
	})
}

// SolveLT replaces the n×m matrix b by L⁻ᵀ·b.
func (c *Cholesky) SolveLT(b blas64.General) {
	c.checkRows(b.Rows)
	Parallel(b.Cols, grain, func(_, lo, hi int) {
		c.factor.solveLT(matrix{b.Data[lo:], b.Stride}, c.n, hi-lo)
	})
}

// SolveLVec replaces the vector b of n values by L⁻¹·b.
func (c *Cholesky) SolveLVec(b []float64) {
	c.checkRows(len(b))
	c.factor.solveLVec(b)
}

// SolveLTVec replaces the vector b of n values by L⁻ᵀ·b.
func (c *Cholesky) SolveLTVec(b []float64) {
	c.checkRows(len(b))
	c.factor.solveLTVec(b)
}

// MulL returns L·z for a vector z of n values.
func (c *Cholesky) MulL(z []float64) []float64 {
	c.checkRows(len(z))
	y := make([]float64, c.n)
	for j, v := range z {
		floats.AddScaled(y[j:], v, c.factor.upper.row(j, c.n)[j:])
	}
	return y
}

func (c *Cholesky) checkRows(n int) {
	if n != c.n {
		panic(fmt.Sprintf("linalg: factor of size %d, but %d rows", c.n, n))
	}
}

// Inverse sets dst, n×n, to (A + jitter·I)⁻¹ = L⁻ᵀ·L⁻¹.
func (c *Cholesky) Inverse(dst *mat.SymDense) {
	raw, n := dst.RawSymmetric(), c.n
	c.checkRows(raw.N)
	c.scratch = reuse(c.scratch, n)
	c.factor.invert(c.scratch, padded(n))
	square(matrix{raw.Data, raw.Stride}, c.scratch, n)
}
