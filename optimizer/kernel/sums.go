package kernel

import (
	"fmt"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/linalg"
)

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
	partial, spaces := make([]float64, linalg.Chunks(n, rowGrain)*width), k.newWorkspaces(n)
	linalg.Parallel(n, rowGrain, func(chunk, lo, hi int) {
		work := spaces.take()
		defer spaces.give(work)
		sums, point := partial[chunk*width:(chunk+1)*width], work.row[:d]
		weights, stride := work.symmetricRows(w, lo, hi)
		for i := lo; i < hi; i++ {
			if points != nil {
				point = points.RawRowView(i)
			}
			k.of.gradientRow(sums, point, work.scratch, p, i, p, weights[(i-lo)*stride:][:padded(n)])
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
