package kernel

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/vecmath"
)

// NewMatern52 returns the Matérn kernel with ν = 5/2 and a lengthscale for each of the
// columns, at least one (automatic relevance determination):
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
func NewMatern52(columns []Column) *Kernel { return newMatern(columns, matern52) }

// NewMatern32 returns the Matérn kernel with ν = 3/2, with distances and
// hyperparameters as NewMatern52 has them:
//
//	k(x, y) = σ² (1 + √3·r) exp(−√3·r)
func NewMatern32(columns []Column) *Kernel { return newMatern(columns, matern32) }

func newMatern(columns []Column, r radial) *Kernel {
	l := newLayout(columns)
	return &Kernel{layout: l, of: &matern{l, r}}
}

// matern is the covariance of both kernels.
type matern struct {
	layout
	radial radial
}

// scaled is points whose numeric coordinates are divided by their lengthscales.
type scaled struct {
	table
	inverse  []float64 // 1/ℓ of the numeric columns
	squares  []float64 // 1/ℓ² of the categorical columns
	variance float64
}

func (k *matern) params() int { return len(k.columns) + 1 }

func (k *matern) scratch() int { return 2 }

func (k *matern) prepare(theta []float64, x *mat.Dense, _ bool) prepared {
	s := &scaled{variance: math.Exp(theta[len(theta)-1])}
	for _, c := range k.numeric {
		s.inverse = append(s.inverse, math.Exp(-theta[c]))
	}
	for _, c := range k.categorical {
		s.squares = append(s.squares, math.Exp(-2*theta[c]))
	}
	s.table = k.newTable(x, s.inverse, 0)
	return s
}

func (k *matern) row(dst []float64, scratch [][]float64, x prepared, i int, y prepared, from int) {
	sx, sy := x.(*scaled), y.(*scaled)
	exponential := scratch[0][:len(dst)]
	distances(dst, &sx.table, i, &sy.table, from, sx.squares, -k.radial.root)
	vecmath.Exp(exponential, dst)
	k.radial.covariances(dst, exponential, sx.variance)
}

func (k *matern) diag(dst []float64, x prepared) {
	for i := range dst {
		dst[i] = x.(*scaled).variance
	}
}

// gradientRow has, with g_j = −2·w_j·∂k/∂r² and coordinates divided by their
// lengthscales,
//
//	Σ_j w_j ∂k/∂(x_i)_c = −m_ic/ℓ_c,  m_ic = Σ_j g_j (x_ic − y_jc)
//	Σ_ij w_ij ∂k/∂log ℓ_c = Σ_ij g_ij (x_ic − x_jc)² = 2 Σ_i x_ic m_ic
//
// the last for x = y, since g is symmetric then. Any constant may be taken from x
// there, since the m_ic sum to 0: that is the middle of the cube, for the sake of
// rounding. In categorical columns, ∂k/∂log ℓ_c is g_ij/ℓ_c² for a pair that
// differs.
func (k *matern) gradientRow(sums, point []float64, scratch [][]float64, x prepared, i int, y prepared, weights []float64) {
	s, sy := x.(*scaled), y.(*scaled)
	g, exponential, m := scratch[0][:sy.stride], scratch[1][:sy.stride], scratch[1][:len(point)]
	distances(g, &s.table, i, &sy.table, 0, s.squares, -k.radial.root)
	vecmath.Exp(exponential, g)
	sums[len(sums)-1] += s.variance * k.radial.slopes(g, exponential, weights)
	moments(m, g, &s.table, i, &sy.table)
	for j, c := range k.numeric {
		moment := s.variance * m[j]
		sums[c] += 2 * (s.data[j*s.stride+i] - s.inverse[j]/2) * moment
		point[c] = -s.inverse[j] * moment
	}
	for j, c := range k.categorical {
		sums[c] += s.variance * s.squares[j] * m[s.numeric+j]
		point[c] = 0
	}
}

// diagGradient is all zero, since k(x, x) = σ² everywhere.
func (k *matern) diagGradient(dst []float64, _ prepared, _ int) { clear(dst) }

// radial is a Matérn function of the distance r. With a = root·r,
//
//	k/σ² = (1 + a + square·a²) exp(−a)
//	−2·∂(k/σ²)/∂r² = slope·(1 + linear·a) exp(−a).
//
// The derivative is by r² and not by r: that by r has a factor δ/r, which is 0/0 where two points
// coincide, while ∂k/∂r² is finite there. (For ν = 3/2, k = (1 + a)e⁻ᵃ has dk/da = −a·e⁻ᵃ and
// da/dr² = 3/(2a), so that a cancels.)
type radial struct{ root, square, slope, linear float64 }

var (
	matern32 = radial{root: math.Sqrt(3), slope: 3}
	matern52 = radial{root: math.Sqrt(5), square: 1. / 3, slope: 5. / 3, linear: 1}
)

// covariances replaces v = −a by k, given e = exp(−a).
func (f *radial) covariances(v, e []float64, variance float64) {
	done := covariancesVector(v, e, f.square, variance)
	for j := done; j < len(v); j++ {
		v[j] = f.polynomial(v[j]) * float64(variance*e[j])
	}
}

func (f *radial) polynomial(v float64) float64 { return math.FMA(math.FMA(f.square, v, -1), v, 1) }

// slopes replaces v = −a by weight·(−2·∂(k/σ²)/∂r²) and returns Σ weight·k/σ²,
// summed in four lanes, given e = exp(−a). The lengths are multiples of four.
func (f *radial) slopes(v, e, weights []float64) float64 {
	var lanes [4]float64
	if !slopesVector(v, e, weights, f, &lanes) {
		f.slopesGo(v, e, weights, &lanes)
	}
	return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
}

func (f *radial) slopesGo(v, e, weights []float64, lanes *[4]float64) {
	for j, u := range v {
		we := float64(weights[j] * e[j])
		lanes[j%4] = math.FMA(f.polynomial(u), we, lanes[j%4])
		v[j] = math.FMA(-f.slope*f.linear, u, f.slope) * we
	}
}
