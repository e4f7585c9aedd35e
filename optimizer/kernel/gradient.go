package kernel

import (
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/linalg"
)

// ParamGradient implements Kernel.
func (k *matern) ParamGradient(dst []float64, theta []float64, x *mat.Dense, w *mat.SymDense) {
	k.gradients(dst, nil, theta, x, w)
}

// PairGradient implements Kernel.
func (k *matern) PairGradient(dst *mat.Dense, theta []float64, x *mat.Dense, w *mat.SymDense) {
	k.gradients(nil, dst, theta, x, w)
}

// gradients sets both sums over pairs. With g_ij = −2·w_ij·∂k/∂r² and
// coordinates that are divided by their lengthscales,
//
//	Σ_j w_ij ∂k/∂(x_i)_c = −m_ic/ℓ_c,  m_ic = Σ_j g_ij (x_ic − x_jc)
//	Σ_ij w_ij ∂k/∂log ℓ_c = Σ_ij g_ij (x_ic − x_jc)² = 2 Σ_i x_ic m_ic
//
// the last since g is symmetric; any constant may be taken from x there, as the
// m_ic sum to 0. In categorical columns ∂k/∂log ℓ_c is g_ij/ℓ_c² for a pair that
// differs.
func (k *matern) gradients(params []float64, points *mat.Dense, theta []float64, x *mat.Dense, w *mat.SymDense) {
	n, d := x.Dims()
	s := k.scale(theta, x)
	checkGradients(d+1, params, points, x, w)
	partial := make([]float64, linalg.Chunks(n, rowGrain)*(d+1))
	linalg.Parallel(n, rowGrain, func(chunk, lo, hi int) {
		sums := partial[chunk*(d+1) : (chunk+1)*(d+1)]
		weights := symmetricRows(w, lo, hi)
		g, m := make([]float64, n), make([]float64, d)
		for i := lo; i < hi; i++ {
			k.squaredDistances(g, s, i, s, 0)
			sums[d] += s.variance * k.radial.slopes(g, weights[(i-lo)*n:][:n])
			k.moments(m, g, s, i)
			for _, c := range k.numeric {
				sums[c] += 2 * s.variance * (s.data[c*n+i] - s.inverse[c]/2) * m[c]
			}
			for _, c := range k.categorical {
				sums[c] += s.variance * m[c]
			}
			if points != nil {
				k.pairRow(points.RawRowView(i), m, s)
			}
		}
	})
	if params != nil {
		addChunks(params, partial)
	}
}

// moments sets dst[c] to m_ic of gradients in numeric columns, and in
// categorical ones to Σ_j g_ij/ℓ_c² over the points that differ from point i.
func (k *matern) moments(dst, g []float64, s *scaled, i int) {
	for _, c := range k.numeric {
		v := s.data[c*s.n+i]
		var sum float64
		for j, u := range s.column(c)[:len(g)] {
			sum += g[j] * (v - u)
		}
		dst[c] = sum
	}
	for _, c := range k.categorical {
		v := s.data[c*s.n+i]
		var sum float64
		for j, u := range s.column(c)[:len(g)] {
			if u != v {
				sum += g[j]
			}
		}
		dst[c] = sum * s.inverse[c] * s.inverse[c]
	}
}

// pairRow sets a row of PairGradient, given its moments.
func (k *matern) pairRow(dst, moments []float64, s *scaled) {
	for _, c := range k.numeric {
		dst[c] = -s.variance * s.inverse[c] * moments[c]
	}
	for _, c := range k.categorical {
		dst[c] = 0
	}
}

// symmetricRows returns rows lo … hi−1 of w, one after the other.
func symmetricRows(w *mat.SymDense, lo, hi int) []float64 {
	raw := w.RawSymmetric() // the upper triangle
	n := raw.N
	out := make([]float64, (hi-lo)*n)
	for j := range hi {
		from := max(j, lo)
		for i, v := range raw.Data[j*raw.Stride+from : j*raw.Stride+hi] {
			out[(from-lo+i)*n+j] = v
		}
	}
	for i := lo; i < hi; i++ {
		copy(out[(i-lo)*n+i:(i-lo+1)*n], raw.Data[i*raw.Stride+i:i*raw.Stride+n])
	}
	return out
}

// addChunks sets dst to the sum of the rows of partial, in their order.
func addChunks(dst, partial []float64) {
	clear(dst)
	for len(partial) > 0 {
		floats.Add(dst, partial[:len(dst)])
		partial = partial[len(dst):]
	}
}

// InputGradient implements Kernel. With slope = −2·∂k/∂r²,
//
//	∂k(x, y)/∂x_c = −slope · (x_c − y_c)/ℓ_c².
func (k *matern) InputGradient(dst *mat.Dense, theta []float64, x *mat.Dense, point []float64) {
	checkInputGradient(dst, x, point)
	n, d := x.Dims()
	s, at := k.scale(theta, x), k.scale(theta, mat.NewDense(1, d, append([]float64(nil), point...)))
	slope, ones := make([]float64, n), make([]float64, n)
	floats.AddConst(1, ones)
	k.squaredDistances(slope, at, 0, s, 0)
	k.radial.slopes(slope, ones)
	raw := dst.RawMatrix()
	for c := range k.columns {
		if !k.moves(c) {
			for i := range n {
				raw.Data[i*raw.Stride+c] = 0
			}
			continue
		}
		factor := -s.variance * s.inverse[c]
		for i, u := range s.column(c) {
			raw.Data[i*raw.Stride+c] = factor * slope[i] * (at.data[c] - u)
		}
	}
}

// DiagGradient implements Kernel: all zero, since k(x, x) = σ² everywhere.
func (k *matern) DiagGradient(dst []float64, _ []float64, _ []float64) {
	k.checkDim(len(dst))
	clear(dst)
}
