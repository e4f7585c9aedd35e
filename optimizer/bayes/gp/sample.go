package gp

import (
	"fmt"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
)

// Sample draws S functions from the posterior and returns their values at the m rows of
// x, m×S, without observation noise; z, m×S, holds independent standard normal numbers.
// It takes O(mn² + m²n + m³) steps. The error wraps linalg.ErrNotPositiveDefinite.
func (m *Model) Sample(x, z mat.Matrix) (*mat.Dense, error) {
	at := m.kernel.Transform(x)
	rows, _ := at.Dims()
	if r, _ := z.Dims(); r != rows {
		panic(fmt.Sprintf("gp: normals for %d points, want %d", r, rows))
	}
	points := m.kernel.Prepare(m.hyper.Kernel, at, false)
	explained := linalg.NewColumns(m.Len(), rows)
	m.points.Cross(firstColumns(explained, rows), points)
	m.factor.SolveL(explained)
	mean := make([]float64, rows)
	linalg.AddRows(mean, m.beta, explained)
	points.AddDrift(mean)

	covariance := mat.NewSymDense(rows, nil)
	points.Gram(covariance)
	linalg.SubtractGram(covariance, explained)
	var root linalg.Cholesky
	if err := root.Factorize(covariance); err != nil {
		return nil, fmt.Errorf("draw a function at %d points: %w", rows, err)
	}
	_, draws := z.Dims()
	values := mat.NewDense(rows, draws, nil)
	for s := range draws {
		value := root.MulL(mat.Col(nil, s, z))
		floats.Add(value, mean)
		values.SetCol(s, value)
	}
	return values, nil
}
