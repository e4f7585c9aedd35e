package linalg

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// ErrNotPositiveDefinite says that a matrix has no Cholesky factorisation even
// with the largest jitter on its diagonal.
var ErrNotPositiveDefinite = errors.New("the matrix is not positive definite")

const (
	// The jitter starts a little above the rounding error of a sum of a
	// thousand terms and ends where it would change a model visibly.
	firstJitter = 1e-12
	lastJitter  = 1e-3
	// columnGrain columns of right-hand sides and a factor's row fit the cache.
	columnGrain = 64
)

// Cholesky is the factor L of A + jitter·I = L·Lᵀ with what is derived from it.
// It is safe for concurrent reading.
type Cholesky struct {
	upper  blas64.Triangular // Lᵀ
	logDet float64
	jitter float64
}

// Factorize sets c to the factor of a, n×n, which it does not change, reusing
// c's memory where it suffices. Where rounding has left a not quite positive
// definite, it adds to the diagonal the smallest of a rising series of
// multiples of the mean diagonal element, 1e-12, 1e-11, …, 1e-3, that lets the
// factorisation end; Jitter returns it. The error wraps ErrNotPositiveDefinite.
func (c *Cholesky) Factorize(a *mat.SymDense) error {
	raw := a.RawSymmetric()
	n := raw.N
	if cap(c.upper.Data) < n*n {
		c.upper.Data = make([]float64, n*n)
	}
	c.upper = blas64.Triangular{N: n, Stride: n, Data: c.upper.Data[:n*n], Uplo: blas.Upper, Diag: blas.NonUnit}
	var mean float64
	for i := range n {
		mean += raw.Data[i*raw.Stride+i] / float64(n)
	}
	for relative := 0.0; relative <= lastJitter; relative = max(firstJitter, 10*relative) {
		if c.try(raw, relative*mean) {
			return nil
		}
	}
	return fmt.Errorf("factorise a %d×%d matrix of mean diagonal %g: %w even with %g of it added", n, n, mean, ErrNotPositiveDefinite, lastJitter)
}

func (c *Cholesky) try(a blas64.Symmetric, jitter float64) bool {
	n := a.N
	for i := range n {
		copy(c.upper.Data[i*n+i:(i+1)*n], a.Data[i*a.Stride+i:i*a.Stride+n])
		c.upper.Data[i*n+i] += jitter
	}
	sym := blas64.Symmetric{N: n, Stride: n, Data: c.upper.Data, Uplo: blas.Upper}
	if _, ok := lapack64.Potrf(sym); !ok {
		return false
	}
	c.jitter, c.logDet = jitter, 0
	for i := range n {
		c.logDet += 2 * math.Log(c.upper.Data[i*n+i])
	}
	return !math.IsNaN(c.logDet)
}

// Size returns n, the number of rows of the factored matrix.
func (c *Cholesky) Size() int { return c.upper.N }

// LogDet returns log |A + jitter·I|.
func (c *Cholesky) LogDet() float64 { return c.logDet }

// Jitter returns what was added to the diagonal.
func (c *Cholesky) Jitter() float64 { return c.jitter }

// SolveL replaces the n×m matrix b by L⁻¹·b.
func (c *Cholesky) SolveL(b blas64.General) { c.solve(blas.Trans, b) }

// SolveLT replaces the n×m matrix b by L⁻ᵀ·b.
func (c *Cholesky) SolveLT(b blas64.General) { c.solve(blas.NoTrans, b) }

func (c *Cholesky) solve(t blas.Transpose, b blas64.General) {
	Parallel(b.Cols, columnGrain, func(_, lo, hi int) {
		part := blas64.General{Rows: b.Rows, Cols: hi - lo, Stride: b.Stride, Data: b.Data[lo:]}
		blas64.Trsm(blas.Left, t, 1, c.upper, part)
	})
}

// SolveLVec replaces the vector b of n values by L⁻¹·b.
func (c *Cholesky) SolveLVec(b []float64) {
	blas64.Trsv(blas.Trans, c.upper, blas64.Vector{N: len(b), Inc: 1, Data: b})
}

// SolveLTVec replaces the vector b of n values by L⁻ᵀ·b.
func (c *Cholesky) SolveLTVec(b []float64) {
	blas64.Trsv(blas.NoTrans, c.upper, blas64.Vector{N: len(b), Inc: 1, Data: b})
}

// Inverse sets dst to (A + jitter·I)⁻¹. dst must be n×n.
func (c *Cholesky) Inverse(dst *mat.SymDense) {
	raw := dst.RawSymmetric()
	n := c.upper.N
	if raw.N != n {
		panic(fmt.Sprintf("linalg: inverse of size %d into %d", n, raw.N))
	}
	for i := range n {
		copy(raw.Data[i*raw.Stride+i:i*raw.Stride+n], c.upper.Data[i*n+i:(i+1)*n])
	}
	t := blas64.Triangular{N: n, Stride: raw.Stride, Data: raw.Data, Uplo: blas.Upper, Diag: blas.NonUnit}
	lapack64.Potri(t)
}
