package gp

import "github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"

// LeaveOneOut returns, for each observation, how far it lies above what the model
// predicts for it from all the others, at the same hyperparameters, and the
// variance of that prediction, noise included (Rasmussen and Williams, equations
// 5.10 to 5.12; with A the covariance matrix of the observations):
//
//	yᵢ − μᵢ = [A⁻¹y]ᵢ / [A⁻¹]ᵢᵢ,  σᵢ² = 1 / [A⁻¹]ᵢᵢ
func (m *Model) LeaveOneOut() (residual, variance []float64) {
	n := m.Len()
	residual, variance = make([]float64, n), make([]float64, n)
	inverse := linalg.NewColumns(n, n) // L⁻¹, whose columns' squares sum to [A⁻¹]ᵢᵢ
	for i := range n {
		inverse.Data[i*inverse.Stride+i] = 1
	}
	m.factor.SolveL(inverse)
	linalg.AddSquares(variance, inverse)
	for i, precision := range variance {
		residual[i], variance[i] = m.alpha[i]/precision, 1/precision
	}
	return residual, variance
}
