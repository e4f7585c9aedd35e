package kernel

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/linalg"
)

const (
	sqrt5 = 2.23606797749978969640917366873127623544
	// rowGrain is how many rows a goroutine takes at a time: enough work to
	// pay for the hand-over, few enough to balance triangular loops.
	rowGrain = 16
)

// Matern52 is the Matérn kernel with ν = 5/2 and a lengthscale for each column
// (automatic relevance determination):
//
//	k(x, y) = σ² (1 + √5·r + 5r²/3) exp(−√5·r),  r² = Σ_c δ_c² / ℓ_c²
//
// where δ_c is x_c − y_c in numeric columns and [x_c ≠ y_c] in categorical
// ones. The hyperparameters are log ℓ_0, …, log ℓ_{d−1}, log σ². (Rasmussen and
// Williams, Gaussian Processes for Machine Learning, equation 4.17.)
//
// The Hamming distance under the root is the Euclidean one between the corners
// of a simplex, so the kernel stays positive definite; it equals a one-hot
// encoding whose columns share the lengthscale √2·ℓ_c.
type Matern52 struct {
	columns     []Column
	numeric     []int // indices of the numeric columns
	categorical []int // indices of the categorical columns
}

var _ Kernel = (*Matern52)(nil)

// NewMatern52 returns the kernel over the columns, at least one.
func NewMatern52(columns []Column) *Matern52 {
	if len(columns) == 0 {
		panic("kernel: no columns")
	}
	k := &Matern52{columns: append([]Column(nil), columns...)}
	for c, column := range columns {
		if column.Categorical {
			k.categorical = append(k.categorical, c)
		} else {
			k.numeric = append(k.numeric, c)
		}
	}
	return k
}

// Dim implements Kernel.
func (k *Matern52) Dim() int { return len(k.columns) }

// NumParams implements Kernel.
func (k *Matern52) NumParams() int { return len(k.columns) + 1 }

// Transform implements Kernel.
func (k *Matern52) Transform(x mat.Matrix) *mat.Dense {
	out := mat.DenseCopyOf(x)
	n, d := out.Dims()
	k.checkDim(d)
	for c, column := range k.columns {
		if column.Snap == nil {
			continue
		}
		for i := range n {
			out.Set(i, c, column.Snap(out.At(i, c)))
		}
	}
	return out
}

// Gram implements Kernel.
func (k *Matern52) Gram(dst *mat.SymDense, theta []float64, x *mat.Dense) {
	n, _ := x.Dims()
	s := k.scale(theta, x)
	raw := dst.RawSymmetric()
	if raw.N != n {
		panic(fmt.Sprintf("kernel: Gram of %d points into a matrix of %d rows", n, raw.N))
	}
	linalg.Parallel(n, rowGrain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := raw.Data[i*raw.Stride+i : i*raw.Stride+n]
			k.squaredDistances(row, s, i, s, i)
			covariances(row, s.variance)
		}
	})
}

// Cross implements Kernel.
func (k *Matern52) Cross(dst *mat.Dense, theta []float64, x, y *mat.Dense) {
	n, _ := x.Dims()
	m, _ := y.Dims()
	if r, c := dst.Dims(); r != n || c != m {
		panic(fmt.Sprintf("kernel: Cross of %d and %d points into %d×%d", n, m, r, c))
	}
	sx, sy := k.scale(theta, x), k.scale(theta, y)
	raw := dst.RawMatrix()
	linalg.Parallel(n, rowGrain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := raw.Data[i*raw.Stride : i*raw.Stride+m]
			k.squaredDistances(row, sx, i, sy, 0)
			covariances(row, sx.variance)
		}
	})
}

// Diag implements Kernel.
func (k *Matern52) Diag(dst []float64, theta []float64, x *mat.Dense) {
	if n, _ := x.Dims(); n != len(dst) {
		panic(fmt.Sprintf("kernel: diagonal of %d points into %d values", n, len(dst)))
	}
	variance := math.Exp(theta[len(theta)-1])
	for i := range dst {
		dst[i] = variance
	}
}

func (k *Matern52) checkDim(d int) {
	if d != len(k.columns) {
		panic(fmt.Sprintf("kernel: points of %d columns, want %d", d, len(k.columns)))
	}
}

// scaled holds n points divided by their lengthscales, column after column, so
// that the inner loops run along contiguous memory.
type scaled struct {
	n        int
	data     []float64 // column c of point i is data[c*n+i]
	inverse  []float64 // 1/ℓ_c
	variance float64
}

func (s *scaled) column(c int) []float64 { return s.data[c*s.n : (c+1)*s.n] }

func (k *Matern52) scale(theta []float64, x *mat.Dense) *scaled {
	n, d := x.Dims()
	k.checkDim(d)
	if len(theta) != d+1 {
		panic(fmt.Sprintf("kernel: %d hyperparameters, want %d", len(theta), d+1))
	}
	s := &scaled{n: n, data: make([]float64, n*d), inverse: make([]float64, d), variance: math.Exp(theta[d])}
	raw := x.RawMatrix()
	for c, column := range k.columns {
		s.inverse[c] = math.Exp(-theta[c])
		factor := s.inverse[c]
		if column.Categorical {
			factor = 1 // codes are compared, not subtracted
		}
		to := s.column(c)
		for i := range to {
			to[i] = raw.Data[i*raw.Stride+c] * factor
		}
	}
	return s
}

// squaredDistances sets dst[j] to r² between point i of x and point from+j of y.
func (k *Matern52) squaredDistances(dst []float64, x *scaled, i int, y *scaled, from int) {
	clear(dst)
	for _, c := range k.numeric {
		v := x.data[c*x.n+i]
		col := y.column(c)[from:][:len(dst)]
		for j, u := range col {
			delta := v - u
			dst[j] += delta * delta
		}
	}
	for _, c := range k.categorical {
		v, w := x.data[c*x.n+i], x.inverse[c]*x.inverse[c]
		col := y.column(c)[from:][:len(dst)]
		for j, u := range col {
			if u != v {
				dst[j] += w
			}
		}
	}
}

// covariances replaces squared distances by covariances.
func covariances(r2 []float64, variance float64) {
	for j, v := range r2 {
		a := sqrt5 * math.Sqrt(v)
		r2[j] = variance * (1 + a + a*a/3) * math.Exp(-a)
	}
}
