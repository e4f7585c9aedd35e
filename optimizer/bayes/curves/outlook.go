package curves

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
)

// Outlook is what a model expects of trials that go on to their last step, given that all that run
// do. It is not safe for concurrent use.
type Outlook struct {
	model     *Model
	fantasies *gp.Fantasies
}

// Expected are the mean and the standard deviation of where a trial ends, as the model sees costs.
type Expected struct{ Mean, SD float64 }

// LogEI returns the logarithm of the expected improvement below the lowest cost so far.
func (m *Model) LogEI(e Expected) float64 { return acquisition.LogEI(e.Mean, e.SD, m.best) }

// Outlook returns the model conditioned on the trials that run: each ends where the model expects
// it to, so that others are worth less the more they are like those.
func (m *Model) Outlook() *Outlook {
	o := &Outlook{m, m.process.Fantasies()}
	for i := range m.curves {
		if m.curves[i].Runs {
			o.believe(m.curves[i].X, i)
		}
	}
	return o
}

func (o *Outlook) believe(x []float64, trial int) {
	at := o.model.at(x, o.model.last, trial)
	o.fantasies.Believe(mat.NewDense(1, len(at), at))
}

// Curves returns what is expected of some of the model's curves, by their indices.
func (o *Outlook) Curves(indices []int) []Expected {
	return o.expected(len(indices), func(i int) ([]float64, int64, int) {
		return o.model.curves[indices[i]].X, o.model.last, indices[i]
	})
}

// Path returns what is expected of one of the model's curves, by its index, at some steps: its best cost by then.
func (o *Outlook) Path(curve int, steps []int64) []Expected {
	return o.expected(len(steps), func(i int) ([]float64, int64, int) { return o.model.curves[curve].X, steps[i], curve })
}

// Fresh returns what is expected of new trials, whose configurations are the rows of x.
func (o *Outlook) Fresh(x [][]float64) []Expected {
	return o.expected(len(x), func(i int) ([]float64, int64, int) { return x[i], o.model.last, len(o.model.curves) })
}

func (o *Outlook) expected(n int, of func(i int) (x []float64, step int64, trial int)) []Expected {
	if n == 0 {
		return nil
	}
	var rows *mat.Dense
	for i := range n {
		x, step, trial := of(i)
		at := o.model.at(x, step, trial)
		if rows == nil {
			rows = mat.NewDense(n, len(at), nil)
		}
		rows.SetRow(i, at)
	}
	mean, variance := o.fantasies.Posterior(rows)
	list := make([]Expected, n)
	for i := range list {
		list[i] = Expected{mean[i], math.Sqrt(variance[i])}
	}
	return list
}

// Cost returns the cost that the model sees as z.
func (m *Model) Cost(z float64) float64 { return m.scale.cost(z) }
