package gp

import (
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
)

// Mean returns the posterior mean at the rows of x. It takes O(n) steps a row,
// where Posterior takes O(n²) for the variance.
func (m *Model) Mean(x mat.Matrix) []float64 {
	at := m.kernel.Transform(x)
	rows, d := at.Dims()
	mean := make([]float64, rows)
	linalg.Parallel(rows, largestBlock, func(_, lo, hi int) {
		cross := mat.NewDense(m.Len(), hi-lo, nil)
		m.points.Cross(cross, m.kernel.Prepare(m.hyper.Kernel, at.Slice(lo, hi, 0, d).(*mat.Dense), false))
		linalg.AddRows(mean[lo:hi], m.alpha, cross.RawMatrix())
	})
	return mean
}
