package kernel

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/linalg"
)

// ParamGradient implements Kernel. With a = √5·r,
//
//	∂k/∂log ℓ_c = σ² · 5/3 · (1 + a) exp(−a) · δ_c²/ℓ_c²,  ∂k/∂log σ² = k.
//
// One pass over the pairs serves all hyperparameters.
func (k *Matern52) ParamGradient(dst []float64, theta []float64, x *mat.Dense, w *mat.SymDense) {
	n, d := x.Dims()
	s := k.scale(theta, x)
	raw := w.RawSymmetric()
	if raw.N != n || len(dst) != d+1 {
		panic(fmt.Sprintf("kernel: gradient of %d points with %d weights into %d values, want %d", n, raw.N, len(dst), d+1))
	}
	width := d + 1
	partial := make([]float64, linalg.Chunks(n, rowGrain)*width)
	linalg.Parallel(n, rowGrain, func(chunk, lo, hi int) {
		sums := partial[chunk*width : (chunk+1)*width]
		g := make([]float64, n)
		for i := lo; i < hi; i++ {
			weights := raw.Data[i*raw.Stride+i+1 : i*raw.Stride+n]
			row := g[:len(weights)]
			k.squaredDistances(row, s, i, s, i+1)
			sums[d] += slopes(row, weights)
			sums[d] += raw.Data[i*raw.Stride+i] / 2 // k(x_i, x_i) = σ², once
			k.accumulate(sums, row, s, i)
		}
	})
	clear(dst)
	for start := 0; start < len(partial); start += width {
		for p, v := range partial[start : start+width] {
			dst[p] += v
		}
	}
	for c := range d {
		dst[c] *= 2 * s.variance * 5 / 3 // both triangles
	}
	dst[d] *= 2 * s.variance
}

// slopes replaces squared distances r² by weight·(1+a)·exp(−a) and returns the
// sum of weight·k/σ².
func slopes(r2, weights []float64) (sum float64) {
	weights = weights[:len(r2)]
	for j, v := range r2 {
		a := sqrt5 * math.Sqrt(v)
		e := weights[j] * math.Exp(-a)
		sum += e * (1 + a + a*a/3)
		r2[j] = e * (1 + a)
	}
	return sum
}

// accumulate adds Σ_j g_j δ_c²/ℓ_c² between point i and points i+1+j to sums[c].
func (k *Matern52) accumulate(sums, g []float64, s *scaled, i int) {
	for _, c := range k.numeric {
		v := s.data[c*s.n+i]
		col := s.column(c)[i+1:][:len(g)]
		var sum float64
		for j, u := range col {
			delta := v - u
			sum += g[j] * (delta * delta)
		}
		sums[c] += sum
	}
	for _, c := range k.categorical {
		v := s.data[c*s.n+i]
		col := s.column(c)[i+1:][:len(g)]
		var sum float64
		for j, u := range col {
			if u != v {
				sum += g[j]
			}
		}
		sums[c] += sum * s.inverse[c] * s.inverse[c]
	}
}

// InputGradient implements Kernel. With a = √5·r,
//
//	∂k(x, y)/∂x_c = −σ² · 5/3 · (1 + a) exp(−a) · (x_c − y_c)/ℓ_c².
func (k *Matern52) InputGradient(dst *mat.Dense, theta []float64, x *mat.Dense, point []float64) {
	n, d := x.Dims()
	if r, c := dst.Dims(); r != n || c != d || len(point) != d {
		panic(fmt.Sprintf("kernel: input gradient at a point of %d columns for %d×%d points into %d×%d", len(point), n, d, r, c))
	}
	s := k.scale(theta, x)
	at := k.scale(theta, mat.NewDense(1, d, append([]float64(nil), point...)))
	slope := make([]float64, n)
	k.squaredDistances(slope, at, 0, s, 0)
	for i, v := range slope {
		a := sqrt5 * math.Sqrt(v)
		slope[i] = -s.variance * 5 / 3 * (1 + a) * math.Exp(-a)
	}
	raw := dst.RawMatrix()
	for c, column := range k.columns {
		if column.Categorical || column.Snap != nil {
			for i := range n {
				raw.Data[i*raw.Stride+c] = 0
			}
			continue
		}
		col := s.column(c)
		for i, u := range col {
			raw.Data[i*raw.Stride+c] = slope[i] * (at.data[c] - u) * s.inverse[c]
		}
	}
}

// DiagGradient implements Kernel: all zero, since k(x, x) = σ² everywhere.
func (k *Matern52) DiagGradient(dst []float64, _ []float64, _ []float64) {
	k.checkDim(len(dst))
	clear(dst)
}
