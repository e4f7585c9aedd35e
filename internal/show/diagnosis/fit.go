package diagnosis

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/transform"
	"github.com/fantasia-hpo/fantasia/study"
)

// fitUsed fits the model that the optimiser uses by default.
func (e *examination) fitUsed(ctx context.Context) (*surrogate.Model, error) {
	o := surrogate.DefaultOptions()
	return surrogate.Fit(ctx, surrogate.Observe(e.problem, e.encoding, o), o, nil, e.rand())
}

// fit fits a model with or without the transforms, for comparisons. It fits all
// values as they are: the optimiser may clip outliers, and clipped values have no
// density to compare.
func (e *examination) fit(ctx context.Context, output, warp bool) (*surrogate.Model, error) {
	o := surrogate.DefaultOptions()
	o.Transform, o.Warp = output, warp
	data := surrogate.Observe(e.problem, e.encoding, o)
	chosen := transform.Standard
	if output {
		chosen = transform.Fit
	}
	return surrogate.Fit(ctx, data.Through(chosen(e.values(data))), o, nil, e.rand())
}

func (e *examination) rand() *rand.Rand {
	return optimizer.NewRand(e.problem.Seed, len(e.problem.Observations))
}

// values returns the observed values of the rows of the data, lower being better.
func (e *examination) values(d *surrogate.Data) []float64 {
	return each.Of(d.Of, func(i int) float64 { return e.problem.Direction.Cost(e.problem.Observations[i].Values.First()) })
}

// explained is predicted for the model that the optimiser uses by default.
func (e *examination) explained() float64 { return predicted(e.used) }

// predicted returns the share of the variance of outcomes that a model predicts for outcomes that
// it was not shown. It is leave-one-out cross-validation with the hyperparameters of all observations
// (Rasmussen and Williams, Gaussian Processes for Machine Learning, section 5.4.2), compared with
// the mean of the other outcomes: 0 is a model that knows no more than that, and a negative share one that
// knows less.
func predicted(m *surrogate.Model) float64 {
	residual, _ := m.GP.LeaveOneOut()
	n := float64(len(residual))
	var missed float64
	for _, r := range residual {
		missed += r * r
	}
	// The mean of the others misses each value by n/(n−1) times what the mean of
	// all does.
	explained := 1 - missed*(n-1)*(n-1)/(stat.PopVariance(m.Data.Y, nil)*n*n*n)
	if !study.Finite(explained) { // the model's values do not vary
		return 0
	}
	return explained
}

// predictive returns the log densities of the observed values, in their own
// units, that the model predicts for each from all the others.
func (e *examination) predictive(m *surrogate.Model) []float64 {
	residual, variance := m.GP.LeaveOneOut()
	values := e.values(m.Data)
	for row, r := range residual {
		jacobian := m.Data.Transform().LogJacobian(values[row : row+1])
		residual[row] = -r*r/variance[row]/2 - math.Log(2*math.Pi*variance[row])/2 + jacobian
	}
	return residual
}
