package curves

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
)

// Final returns the model of where trials end, as a function of their configurations alone: how a trial deviates from what its
// configuration is worth is luck, and says nothing for another one. Its fantasies begin with the trials that run: each ends
// where the model expects it to.
func (m *Model) Final() bayes.Surrogate { return final{m} }

// final is a Model at the last step of configurations.
type final struct{ *Model }

// alone is the number of no trial: see kernel.NewCurves.
const alone = -1

// at returns the model's points of trials of these numbers that have run to their end.
func (f final) at(x mat.Matrix, trial func(i int) int) *mat.Dense {
	n, d := x.Dims()
	rows := mat.NewDense(n, d+2, nil)
	for i := range n {
		rows.SetRow(i, f.Model.at(mat.Row(nil, i, x), f.last, trial(i)))
	}
	return rows
}

func (f final) alone(x mat.Matrix) *mat.Dense { return f.at(x, func(int) int { return alone }) }

// Len implements bayes.Surrogate.
func (f final) Len() int { return f.points }

// Noise implements bayes.Surrogate. It returns the variance of the noise in a report.
func (f final) Noise() float64 { return f.process.Hyperparameters().Noise }

// Lengthscales implements bayes.Surrogate.
func (f final) Lengthscales() []float64 {
	return f.process.Hyperparameters().Kernel[:f.process.Dim()-2]
}

// Posterior implements bayes.Surrogate.
func (f final) Posterior(x mat.Matrix) (mean, variance []float64) {
	return f.process.Posterior(f.alone(x))
}

// Sample implements bayes.Surrogate.
func (f final) Sample(x, z mat.Matrix) (*mat.Dense, error) { return f.process.Sample(f.alone(x), z) }

// Fantasies implements bayes.Surrogate.
func (f final) Fantasies() bayes.Fantasies {
	return &finalFantasies{f, f.Outlook().fantasies, len(f.curves)}
}

// finalFantasies are those of final.
type finalFantasies struct {
	final
	fantasies *gp.Fantasies
	next      int // number of the next trial that is believed
}

// Believe implements bayes.Fantasies: each row is a trial of its own.
func (f *finalFantasies) Believe(x mat.Matrix) {
	f.fantasies.Believe(f.at(x, func(i int) int { return f.next + i }))
	n, _ := x.Dims()
	f.next += n
}

// Posterior implements bayes.Fantasies.
func (f *finalFantasies) Posterior(x mat.Matrix) (mean, variance []float64) {
	return f.fantasies.Posterior(f.alone(x))
}

// Candidates implements bayes.Fantasies.
func (f *finalFantasies) Candidates(x mat.Matrix) *gp.Candidates {
	return f.fantasies.Candidates(f.alone(x))
}

// Gradients implements bayes.Fantasies.
func (f *finalFantasies) Gradients(x mat.Matrix) *gp.Gradients {
	g := f.fantasies.Gradients(f.alone(x))
	n, d := x.Dims()
	g.DMean, g.DVariance = g.DMean.Slice(0, n, 0, d).(*mat.Dense), g.DVariance.Slice(0, n, 0, d).(*mat.Dense)
	return g
}

// Moments returns the mean of a cost with this posterior mean and variance, as the model sees costs, and about its standard deviation.
func (m *Model) Moments(mean, variance float64) (expected, sd float64) {
	spread := math.Sqrt(variance)
	return m.Cost(mean), math.Abs(m.Cost(mean+spread)-m.Cost(mean-spread)) / 2
}
