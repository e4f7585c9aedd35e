package loop

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// Recommend returns the observation of the data with the lowest expected outcome, of those
// that completed within all limits. Evaluations are exact with the given probability, and
// the outcome is then the observed one; otherwise it is the posterior's. It is nil if there is
// no such observation, or if the expectation is too large for a float64.
func Recommend(m bayes.Surrogate, d *surrogate.Data, p *optimizer.Problem, exact float64) *optimizer.Recommendation {
	var completed []int // rows of the data
	for row, i := range d.Of {
		if p.Observations[i].Within() {
			completed = append(completed, row)
		}
	}
	if len(completed) == 0 {
		return nil
	}
	_, dim := d.X.Dims()
	x := mat.NewDense(len(completed), dim, nil)
	for i, row := range completed {
		x.SetRow(i, d.X.RawRowView(row))
	}
	mean, variance := m.Posterior(x)
	outcomes := make([]float64, len(completed))
	for i, row := range completed {
		outcomes[i] = exact*d.Y[row] + (1-exact)*mean[i]
	}
	best := Lowest(outcomes, 1)[0]
	o := p.Observations[d.Of[completed[best]]]
	expected, spread := d.Moments(mean[best], variance[best])
	value := Finite(exact*o.Values.First() + (1-exact)*expected)
	sd := Finite(MixtureSD(exact, o.Values.First(), expected, spread))
	if value == nil || sd == nil {
		return nil
	}
	return &optimizer.Recommendation{Trial: o.Trial, Mean: *value, SD: *sd, Point: o.At()}
}

// MixtureSD returns the standard deviation of a mixture: value with probability p,
// otherwise a distribution with the given mean and standard deviation.
func MixtureSD(p, value, mean, sd float64) float64 {
	root := math.Sqrt(p)
	return math.Sqrt(1-p) * math.Hypot(sd, root*value-root*mean)
}
