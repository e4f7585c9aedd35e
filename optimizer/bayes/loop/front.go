package loop

import (
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// frontAmong is how many observations, the first front and those behind it, are searched
// for the front of posterior means.
const frontAmong = 256

// Front is what the search for a front of several objectives knows of it. Each member of
// the loop is the model of one objective.
type Front struct {
	costs [][]float64
	by    bayes.Joint
	joint func(means [][]float64, reference []float64) bayes.Joint
	// reference returns the point up to which the hypervolume of a front of means is measured.
	reference func(means [][]float64) []float64
	means     [][]float64 // at the known places, at the last refresh
	picked    [][]float64 // the means at the points picked so far, at the time of each
}

// NewFront returns a front of the rows of data with these costs: one for each objective,
// lower is better. reference returns the reference point of some posterior means, and joint
// makes the acquisition function that improves on their front within a reference point.
func NewFront(
	costs [][]float64, reference func(means [][]float64) []float64, joint func(means [][]float64, reference []float64) bayes.Joint,
) *Front {
	return &Front{costs: costs, reference: reference, joint: joint}
}

// best returns those of the rows with the best observations, front after front, and how many
// of them are on the first.
func (f *Front) best(left []int) (rows []int, first int) {
	for len(left) > 0 && len(rows) < frontAmong {
		front := pareto.Front(indices.Pick(f.costs, left))
		var behind []int
		for i, row := range left {
			if _, on := slices.BinarySearch(front, i); on {
				rows = append(rows, row)
			} else {
				behind = append(behind, row)
			}
		}
		if first == 0 {
			first = len(rows)
		}
		left = behind
	}
	return rows[:min(frontAmong, len(rows))], min(frontAmong, first)
}

// refresh updates the acquisition function by the posteriors at the known places that count, of
// the first rows, and at the points picked since.
func (f *Front) refresh(of []posterior, known int, counts func(place int) bool) {
	f.means = slices.Clone(f.picked)
	for row := range known {
		if counts(row) {
			mean, _ := across(of, row)
			f.means = append(f.means, mean)
		}
	}
	if len(f.means) > 0 {
		f.by = f.joint(f.means, f.reference(f.means))
	}
}

// pick takes note of a point with this posterior, which counts if it is expected to be within
// all limits, and says why it is worth evaluating.
func (f *Front) pick(of []posterior, within bool) (note string) {
	mean, _ := across(of, 0)
	if within {
		f.picked = append(f.picked, mean)
	}
	if slices.ContainsFunc(f.means, func(m []float64) bool { return pareto.Dominates(m, mean) }) {
		return "could enlarge the front: the models are unsure there"
	}
	return "expected to enlarge the front"
}

// across returns the members' posteriors at a row.
func across(of []posterior, row int) (mean, variance []float64) {
	for _, p := range of {
		mean, variance = append(mean, p.mean[row]), append(variance, p.variance[row])
	}
	return mean, variance
}

// jointSlopes returns the acquisition function of all objectives at the rows of x, and its
// gradients.
func (l *Loop) jointSlopes(x *mat.Dense) (values []float64, gradients [][]float64) {
	n, dim := x.Dims()
	members := l.members()
	slopes := make([]struct{ mean, variance *mat.Dense }, len(members))
	of := make([]posterior, len(members))
	for k, m := range members {
		g := m.Fantasies.Gradients(x)
		of[k] = posterior{g.Mean, g.Variance}
		slopes[k].mean, slopes[k].variance = g.DMean, g.DVariance
	}
	dMean, dVariance := make([]float64, len(members)), make([]float64, len(members))
	for i := range n {
		mean, variance := across(of, i)
		values = append(values, l.Front.by.Gradient(mean, variance, dMean, dVariance))
		gradient := make([]float64, dim)
		for k, s := range slopes {
			for c := range gradient {
				gradient[c] += dMean[k]*s.mean.At(i, c) + dVariance[k]*s.variance.At(i, c)
			}
		}
		gradients = append(gradients, gradient)
	}
	return values, gradients
}
