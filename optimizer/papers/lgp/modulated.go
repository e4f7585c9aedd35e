package lgp

import (
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
)

// modulated is a process over the parameters and one latent input, seen where the latent
// input is 0. Latent inputs of later evaluations are unknown; to average over them would
// make the model unsure everywhere, however many evaluations there are.
type modulated struct {
	bayes.Surrogate
	dim int
}

// Lengthscales implements bayes.Surrogate.
func (m modulated) Lengthscales() []float64 { return m.Surrogate.Lengthscales()[:m.dim] }

// Posterior implements bayes.Surrogate.
func (m modulated) Posterior(x mat.Matrix) (mean, variance []float64) {
	return m.Surrogate.Posterior(widened(x))
}

// Sample implements bayes.Surrogate.
func (m modulated) Sample(x, z mat.Matrix) (*mat.Dense, error) {
	return m.Surrogate.Sample(widened(x), z)
}

// Fantasies implements bayes.Surrogate.
func (m modulated) Fantasies() bayes.Fantasies {
	return fantasies{m.Surrogate.Fantasies(), m.dim}
}

// fantasies are those of a modulated process.
type fantasies struct {
	bayes.Fantasies
	dim int
}

// Believe implements bayes.Fantasies.
func (f fantasies) Believe(x mat.Matrix) { f.Fantasies.Believe(widened(x)) }

// Posterior implements bayes.Fantasies.
func (f fantasies) Posterior(x mat.Matrix) (mean, variance []float64) {
	return f.Fantasies.Posterior(widened(x))
}

// Candidates implements bayes.Fantasies.
func (f fantasies) Candidates(x mat.Matrix) *gp.Candidates {
	return f.Fantasies.Candidates(widened(x))
}

// Gradients implements bayes.Fantasies.
func (f fantasies) Gradients(x mat.Matrix) *gp.Gradients {
	g := f.Fantasies.Gradients(widened(x))
	g.DMean, g.DVariance = f.known(g.DMean), f.known(g.DVariance)
	return g
}

// known returns the columns of the parameters.
func (f fantasies) known(m *mat.Dense) *mat.Dense {
	n, _ := m.Dims()
	return m.Slice(0, n, 0, f.dim).(*mat.Dense)
}
