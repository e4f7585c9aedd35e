package kernel

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/linalg"
)

// Linear is the kernel of linear functions without a constant, whose slopes are
// independent and normal with variance v:
//
//	k(x, y) = v·(Σ_numeric z(x_c)·z(y_c) + Σ_categorical [x_c = y_c]),  z(u) = 2u − 1
//
// Coordinates count from the middle of the unit cube; categories are encoded
// one-hot, so that each has a slope of its own. The hyperparameter is log v.
// k(x, x) grows towards the corners.
type Linear struct{ layout }

var _ Kernel = (*Linear)(nil)

// NewLinear returns the kernel over the columns, at least one.
func NewLinear(columns []Column) *Linear { return &Linear{newLayout(columns)} }

// NumParams implements Kernel.
func (k *Linear) NumParams() int { return 1 }

// centre returns z of the points, column after column; categorical columns keep
// their codes.
func (k *Linear) centre(theta []float64, x *mat.Dense) *scaled {
	n, d := x.Dims()
	k.checkDim(d)
	checkParams(len(theta), 1)
	s := &scaled{n: n, data: make([]float64, n*d), variance: math.Exp(theta[0])}
	raw := x.RawMatrix()
	for c, column := range k.columns {
		for i, to := 0, s.column(c); i < n; i++ {
			to[i] = raw.Data[i*raw.Stride+c]
			if !column.Categorical {
				to[i] = 2*to[i] - 1
			}
		}
	}
	return s
}

// products sets dst[j] to k/v between point i of x and point from+j of y.
func (k *Linear) products(dst []float64, x *scaled, i int, y *scaled, from int) {
	clear(dst)
	for _, c := range k.numeric {
		floats.AddScaled(dst, x.data[c*x.n+i], y.column(c)[from:][:len(dst)])
	}
	for _, c := range k.categorical {
		v := x.data[c*x.n+i]
		for j, u := range y.column(c)[from:][:len(dst)] {
			if u == v {
				dst[j]++
			}
		}
	}
}

// Gram implements Kernel.
func (k *Linear) Gram(dst *mat.SymDense, theta []float64, x *mat.Dense) {
	n, _ := x.Dims()
	checkGram(dst, n)
	s, raw := k.centre(theta, x), dst.RawSymmetric()
	linalg.Parallel(n, rowGrain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := raw.Data[i*raw.Stride+i : i*raw.Stride+n]
			k.products(row, s, i, s, i)
			floats.Scale(s.variance, row)
		}
	})
}

// Cross implements Kernel.
func (k *Linear) Cross(dst *mat.Dense, theta []float64, x, y *mat.Dense) {
	n, m := checkCross(dst, x, y)
	sx, sy, raw := k.centre(theta, x), k.centre(theta, y), dst.RawMatrix()
	linalg.Parallel(n, rowGrain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := raw.Data[i*raw.Stride : i*raw.Stride+m]
			k.products(row, sx, i, sy, 0)
			floats.Scale(sx.variance, row)
		}
	})
}

// Diag implements Kernel.
func (k *Linear) Diag(dst []float64, theta []float64, x *mat.Dense) {
	checkDiag(dst, x)
	s := k.centre(theta, x)
	for i := range dst {
		k.products(dst[i:i+1], s, i, s, i)
	}
	floats.Scale(s.variance, dst)
}

// ParamGradient implements Kernel: ∂k/∂log v = k.
func (k *Linear) ParamGradient(dst []float64, theta []float64, x *mat.Dense, w *mat.SymDense) {
	k.gradients(dst, nil, theta, x, w)
}

// PairGradient implements Kernel.
func (k *Linear) PairGradient(dst *mat.Dense, theta []float64, x *mat.Dense, w *mat.SymDense) {
	k.gradients(nil, dst, theta, x, w)
}

// gradients sets both sums over pairs. With m_ic = Σ_j w_ij z(x_jc),
//
//	Σ_j w_ij ∂k/∂(x_i)_c = 2v·m_ic,  Σ_ij w_ij k = v Σ_ic z(x_ic)·m_ic
//
// plus v·w_ij for each category that two points share.
func (k *Linear) gradients(params []float64, points *mat.Dense, theta []float64, x *mat.Dense, w *mat.SymDense) {
	n, _ := x.Dims()
	s := k.centre(theta, x)
	checkGradients(1, params, points, x, w)
	partial := make([]float64, linalg.Chunks(n, rowGrain))
	linalg.Parallel(n, rowGrain, func(chunk, lo, hi int) {
		weights := symmetricRows(w, lo, hi)
		for i := lo; i < hi; i++ {
			row := weights[(i-lo)*n:][:n]
			for _, c := range k.numeric {
				m := floats.Dot(row, s.column(c))
				partial[chunk] += s.variance * s.data[c*n+i] * m
				if points != nil {
					points.Set(i, c, 2*s.variance*m)
				}
			}
			for _, c := range k.categorical {
				for j, u := range s.column(c) {
					if u == s.data[c*n+i] {
						partial[chunk] += s.variance * row[j]
					}
				}
				if points != nil {
					points.Set(i, c, 0)
				}
			}
		}
	})
	if params != nil {
		addChunks(params, partial)
	}
}

// InputGradient implements Kernel: ∂k(x, y)/∂x_c = 2v·z(y_c).
func (k *Linear) InputGradient(dst *mat.Dense, theta []float64, x *mat.Dense, point []float64) {
	checkInputGradient(dst, x, point)
	s, raw := k.centre(theta, x), dst.RawMatrix()
	for c := range k.columns {
		factor := 2 * s.variance
		if !k.moves(c) {
			factor = 0
		}
		for i, z := range s.column(c) {
			raw.Data[i*raw.Stride+c] = factor * z
		}
	}
}

// DiagGradient implements Kernel: ∂k(x, x)/∂x_c = 4v·z(x_c).
func (k *Linear) DiagGradient(dst []float64, theta []float64, point []float64) {
	k.checkDim(len(dst))
	k.checkDim(len(point))
	checkParams(len(theta), 1)
	variance := math.Exp(theta[0])
	for c, u := range point {
		dst[c] = 0
		if k.moves(c) {
			dst[c] = 4 * variance * (2*u - 1)
		}
	}
}
