package kernel

import (
	"fmt"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/linalg"
)

// rowGrain is how many rows a goroutine takes at a time: enough work to pay for
// the hand-over, few enough to balance triangular loops.
const rowGrain = 16

// prepared is points as a covariance sees them under fixed hyperparameters: each
// covariance has a type of its own for it.
type prepared any

// covariance is a kernel's mathematics, row by row of its matrices.
type covariance interface {
	// params is the number of hyperparameters.
	params() int
	// scratch is how many rows of working memory row and gradientRow need, each
	// as long as a padded row and no shorter than a point.
	scratch() int
	// prepare computes what depends on one point alone; slopes says whether
	// derivatives will be asked for.
	prepare(theta []float64, x *mat.Dense, slopes bool) prepared
	// row sets dst[j] to k between point i of x and point from+j of y.
	row(dst []float64, scratch [][]float64, x prepared, i int, y prepared, from int)
	// diag sets dst[i] to k(x_i, x_i).
	diag(dst []float64, x prepared)
	// gradientRow adds Σ_j w_j ∂k(x_i, x_j)/∂theta_p to sums[p] and sets point[c]
	// to Σ_j w_j ∂k(x_i, x_j)/∂(x_i)_c. weights is padded with zeros. What is
	// added over all i may be another sum of the same total, given that the
	// weights are a symmetric matrix.
	gradientRow(sums, point []float64, scratch [][]float64, x prepared, i int, weights []float64)
	// inputGradient sets dst as Kernel.InputGradient does, for the only point of at.
	inputGradient(dst *mat.Dense, at, x prepared)
	// diagGradient sets dst as Kernel.DiagGradient does, for the only point of at.
	diagGradient(dst []float64, at prepared)
}

// driver is the methods of Kernel over a covariance.
type driver struct {
	layout
	of covariance
}

// Dim implements Kernel.
func (k *driver) Dim() int { return len(k.columns) }

// NumParams implements Kernel.
func (k *driver) NumParams() int { return k.of.params() }

func (k *driver) covariance() covariance { return k.of }

func (k *driver) columnLayout() layout { return k.layout }

func (k *driver) prepare(theta []float64, x *mat.Dense, slopes bool) prepared {
	if len(theta) != k.of.params() {
		panic(fmt.Sprintf("kernel: %d hyperparameters, want %d", len(theta), k.of.params()))
	}
	_, d := x.Dims()
	k.checkDim(d)
	return k.of.prepare(theta, x, slopes)
}

// scratch returns the working memory for rows of n points.
func (k *driver) scratch(n int) [][]float64 {
	rows, width := make([][]float64, k.of.scratch()), max(padded(n), k.Dim())
	memory := make([]float64, len(rows)*width)
	for i := range rows {
		rows[i] = memory[i*width : (i+1)*width]
	}
	return rows
}

// Gram implements Kernel.
func (k *driver) Gram(dst *mat.SymDense, theta []float64, x *mat.Dense) {
	n, _ := x.Dims()
	raw := dst.RawSymmetric()
	if raw.N != n {
		panic(fmt.Sprintf("kernel: Gram of %d points into a matrix of %d rows", n, raw.N))
	}
	p := k.prepare(theta, x, false)
	linalg.Parallel(n, rowGrain, func(_, lo, hi int) {
		scratch := k.scratch(n)
		for i := lo; i < hi; i++ {
			k.of.row(raw.Data[i*raw.Stride+i:i*raw.Stride+n], scratch, p, i, p, i)
		}
	})
}

// Cross implements Kernel.
func (k *driver) Cross(dst *mat.Dense, theta []float64, x, y *mat.Dense) {
	n, _ := x.Dims()
	m, _ := y.Dims()
	if r, c := dst.Dims(); r != n || c != m {
		panic(fmt.Sprintf("kernel: Cross of %d and %d points into %d×%d", n, m, r, c))
	}
	px, py, raw := k.prepare(theta, x, false), k.prepare(theta, y, false), dst.RawMatrix()
	linalg.Parallel(n, rowGrain, func(_, lo, hi int) {
		scratch := k.scratch(m)
		for i := lo; i < hi; i++ {
			k.of.row(raw.Data[i*raw.Stride:i*raw.Stride+m], scratch, px, i, py, 0)
		}
	})
}

// Diag implements Kernel.
func (k *driver) Diag(dst []float64, theta []float64, x *mat.Dense) {
	if n, _ := x.Dims(); n != len(dst) {
		panic(fmt.Sprintf("kernel: diagonal of %d points into %d values", n, len(dst)))
	}
	k.of.diag(dst, k.prepare(theta, x, false))
}

// ParamGradient implements Kernel.
func (k *driver) ParamGradient(dst []float64, theta []float64, x *mat.Dense, w *mat.SymDense) {
	if len(dst) != k.NumParams() {
		panic(fmt.Sprintf("kernel: gradient of %d hyperparameters into %d values", k.NumParams(), len(dst)))
	}
	k.gradients(dst, nil, theta, x, w)
}

// PairGradient implements Kernel.
func (k *driver) PairGradient(dst *mat.Dense, theta []float64, x *mat.Dense, w *mat.SymDense) {
	n, d := x.Dims()
	if r, c := dst.Dims(); r != n || c != d {
		panic(fmt.Sprintf("kernel: gradient of %d×%d points into %d×%d", n, d, r, c))
	}
	k.gradients(nil, dst, theta, x, w)
}

// gradients is ParamGradient and PairGradient in one pass over the pairs; either
// destination may be nil.
func (k *driver) gradients(params []float64, points *mat.Dense, theta []float64, x *mat.Dense, w *mat.SymDense) {
	n, d := x.Dims()
	if size := w.SymmetricDim(); size != n {
		panic(fmt.Sprintf("kernel: gradient of %d points with %d weights", n, size))
	}
	p, width := k.prepare(theta, x, true), k.of.params()
	partial := make([]float64, linalg.Chunks(n, rowGrain)*width)
	linalg.Parallel(n, rowGrain, func(chunk, lo, hi int) {
		sums, point := partial[chunk*width:(chunk+1)*width], make([]float64, d)
		weights, scratch, stride := symmetricRows(w, lo, hi), k.scratch(n), padded(n)
		for i := lo; i < hi; i++ {
			if points != nil {
				point = points.RawRowView(i)
			}
			k.of.gradientRow(sums, point, scratch, p, i, weights[(i-lo)*stride:][:stride])
		}
	})
	if params == nil {
		return
	}
	clear(params)
	for ; len(partial) > 0; partial = partial[width:] {
		floats.Add(params, partial[:width])
	}
}

// symmetricRows returns rows lo … hi−1 of w, padded, one after the other.
func symmetricRows(w *mat.SymDense, lo, hi int) []float64 {
	raw := w.RawSymmetric() // the upper triangle
	n, stride := raw.N, padded(raw.N)
	out := make([]float64, (hi-lo)*stride)
	for j := range hi {
		from := max(j, lo)
		for i, v := range raw.Data[j*raw.Stride+from : j*raw.Stride+hi] {
			out[(from-lo+i)*stride+j] = v
		}
	}
	for i := lo; i < hi; i++ {
		copy(out[(i-lo)*stride+i:], raw.Data[i*raw.Stride+i:i*raw.Stride+n])
	}
	return out
}

// InputGradient implements Kernel.
func (k *driver) InputGradient(dst *mat.Dense, theta []float64, x *mat.Dense, point []float64) {
	n, d := x.Dims()
	if r, c := dst.Dims(); r != n || c != d || len(point) != d {
		panic(fmt.Sprintf("kernel: input gradient at a point of %d columns for %d×%d points into %d×%d", len(point), n, d, r, c))
	}
	k.of.inputGradient(dst, k.prepare(theta, mat.NewDense(1, d, point), true), k.prepare(theta, x, false))
}

// DiagGradient implements Kernel.
func (k *driver) DiagGradient(dst []float64, theta []float64, point []float64) {
	k.checkDim(len(dst))
	k.of.diagGradient(dst, k.prepare(theta, mat.NewDense(1, len(point), point), true))
}
