package kernel

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/linalg"
)

// rowGrain is how many rows a goroutine takes at a time: enough work to pay for
// the hand-over, few enough to balance triangular loops.
const rowGrain = 16

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
type Matern52 struct{ matern }

// Matern32 is the Matérn kernel with ν = 3/2, with distances and
// hyperparameters as Matern52 has them:
//
//	k(x, y) = σ² (1 + √3·r) exp(−√3·r)
type Matern32 struct{ matern }

var (
	_ Kernel = (*Matern52)(nil)
	_ Kernel = (*Matern32)(nil)
)

// NewMatern52 returns the kernel over the columns, at least one.
func NewMatern52(columns []Column) *Matern52 {
	return &Matern52{matern{newLayout(columns), radial{root: math.Sqrt(5), square: 1. / 3, slope: 5. / 3, slopeLinear: 1}}}
}

// NewMatern32 returns the kernel over the columns, at least one.
func NewMatern32(columns []Column) *Matern32 {
	return &Matern32{matern{newLayout(columns), radial{root: math.Sqrt(3), slope: 3}}}
}

// radial is a Matérn function of the distance r. With a = root·r,
//
//	k/σ² = (1 + a + square·a²) exp(−a)
//	−2·∂(k/σ²)/∂r² = slope·(1 + slopeLinear·a) exp(−a).
type radial struct{ root, square, slope, slopeLinear float64 }

// matern is what the Matérn kernels share: all but the radial function.
type matern struct {
	layout
	radial radial
}

// NumParams implements Kernel.
func (k *matern) NumParams() int { return len(k.columns) + 1 }

// Gram implements Kernel.
func (k *matern) Gram(dst *mat.SymDense, theta []float64, x *mat.Dense) {
	n, _ := x.Dims()
	checkGram(dst, n)
	s, raw := k.scale(theta, x), dst.RawSymmetric()
	linalg.Parallel(n, rowGrain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := raw.Data[i*raw.Stride+i : i*raw.Stride+n]
			k.squaredDistances(row, s, i, s, i)
			k.radial.covariances(row, s.variance)
		}
	})
}

// Cross implements Kernel.
func (k *matern) Cross(dst *mat.Dense, theta []float64, x, y *mat.Dense) {
	n, m := checkCross(dst, x, y)
	sx, sy, raw := k.scale(theta, x), k.scale(theta, y), dst.RawMatrix()
	linalg.Parallel(n, rowGrain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := raw.Data[i*raw.Stride : i*raw.Stride+m]
			k.squaredDistances(row, sx, i, sy, 0)
			k.radial.covariances(row, sx.variance)
		}
	})
}

// Diag implements Kernel.
func (k *matern) Diag(dst []float64, theta []float64, x *mat.Dense) {
	checkDiag(dst, x)
	checkParams(len(theta), k.NumParams())
	variance := math.Exp(theta[len(theta)-1])
	for i := range dst {
		dst[i] = variance
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

func (k *matern) scale(theta []float64, x *mat.Dense) *scaled {
	n, d := x.Dims()
	k.checkDim(d)
	checkParams(len(theta), d+1)
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
func (k *matern) squaredDistances(dst []float64, x *scaled, i int, y *scaled, from int) {
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
func (f *radial) covariances(r2 []float64, variance float64) {
	for j, v := range r2 {
		a := f.root * math.Sqrt(v)
		r2[j] = variance * (1 + a + f.square*a*a) * math.Exp(-a)
	}
}

// slopes replaces squared distances by weight·(−2·∂(k/σ²)/∂r²) and returns the
// sum of weight·k/σ².
func (f *radial) slopes(r2, weights []float64) (sum float64) {
	weights = weights[:len(r2)]
	for j, v := range r2 {
		a := f.root * math.Sqrt(v)
		e := weights[j] * math.Exp(-a)
		sum += e * (1 + a + f.square*a*a)
		r2[j] = f.slope * (1 + f.slopeLinear*a) * e
	}
	return sum
}
