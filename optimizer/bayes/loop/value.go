package loop

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
)

// value returns the value of a place without the parameters' priors, given its row in the
// posteriors and the logarithm of the probability that its evaluation completes. A term that
// is added here MUST be added with its gradient to round in improve.go, or climbers would
// follow the slope of another function than the one by which points are compared.
func (l *Loop) value(of []posterior, row int, logP float64) float64 {
	return l.Chance.of(l.reward(), l.score(of[:1+len(l.Others)], row), l.probable(of, row, logP))
}

// reward reports whether the score is a reward. Otherwise it is a logarithm.
func (l *Loop) reward() bool { return l.Front == nil && l.Criterion.Reward() }

// score returns the criterion's average over the members, or what it makes of all
// objectives. It is 0 where there is nothing to improve on.
func (l *Loop) score(of []posterior, row int) float64 {
	if l.searching() {
		return 0
	}
	if l.Front != nil {
		return l.Front.by.Value(across(of, row))
	}
	first := l.Criterion.Value(&l.Main.Known, of[0].mean[row], of[0].variance[row])
	if len(l.Others) == 0 {
		return first
	}
	values := []float64{first}
	for i, m := range l.Others {
		values = append(values, l.Criterion.Value(&m.Known, of[i+1].mean[row], of[i+1].variance[row]))
	}
	return average(l.Criterion, values)
}

// average returns the average of a criterion's values: of the improvements, not of their
// logarithms.
func average(by bayes.Acquisition, values []float64) float64 {
	if by.Reward() {
		return bayes.Average(values)
	}
	return acquisition.LogMeanExp(values)
}

// slopes returns the criterion's average over the members at the rows of x, and its
// gradients.
func (l *Loop) slopes(x *mat.Dense) (values []float64, gradients [][]float64) {
	n, dim := x.Dims()
	if l.searching() {
		for range n {
			gradients = append(gradients, make([]float64, dim))
		}
		return make([]float64, n), gradients
	}
	if l.Front != nil {
		return l.jointSlopes(x)
	}
	var all [][]float64 // values by member
	var by [][][]float64
	for _, m := range l.members() {
		g := m.Fantasies.Gradients(x)
		one, slopes := make([]float64, n), make([][]float64, n)
		for i := range n {
			value, dMean, dVariance := l.Criterion.Gradient(&m.Known, g.Mean[i], g.Variance[i])
			gradient := make([]float64, dim)
			for k := range gradient {
				gradient[k] += dVariance * g.DVariance.At(i, k)
				gradient[k] += dMean * g.DMean.At(i, k)
			}
			one[i], slopes[i] = value, gradient
		}
		all, by = append(all, one), append(by, slopes)
	}
	if len(all) == 1 {
		return all[0], by[0]
	}
	for i := range n {
		values = append(values, 0)
		gradients = append(gradients, make([]float64, dim))
		column := make([]float64, len(all))
		for m := range all {
			column[m] = all[m][i]
		}
		values[i] = average(l.Criterion, column)
		for m, v := range column {
			// d log Σ exp v_m / dv_m is the member's share of the sum.
			share := 1 / float64(len(column))
			if !l.Criterion.Reward() {
				share *= math.Exp(v - values[i])
			}
			floats.AddScaled(gradients[i], share, by[m][i])
		}
	}
	return values, gradients
}
