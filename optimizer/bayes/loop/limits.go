package loop

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
)

// Limit is a limit on a metric, as a search sees it.
type Limit struct {
	// Model predicts the metric; lower is better.
	Model bayes.Surrogate
	// Bound is the largest prediction within the limit.
	Bound float64
}

// Limits are what a search knows of the limits that its points must be within. The
// acquisition function is weighted by the probability that a point is (Gardner et al. 2014,
// Bayesian Optimization with Inequality Constraints), and improves on points within all
// limits. While no such point is known or pending, the probability alone counts.
type Limits struct {
	of []Limit
	// outside is by how much each row of the data is outside of the limits; 0 is within all.
	outside []float64
	members []*Member
	// counts says which of the known places count as points within all limits.
	counts []bool
}

// NewLimits returns limits. outside has a number for each row of the search's data: 0 if the
// observation is within all limits, otherwise more the further outside it is.
func NewLimits(of []Limit, outside []float64) *Limits {
	s := &Limits{of: of, outside: outside}
	for _, limit := range of {
		s.members = append(s.members, newMember(limit.Model))
	}
	return s
}

// log returns the logarithm of the probability that a place is within all limits, given their
// posteriors at its row.
func (s *Limits) log(of []posterior, row int) float64 {
	var sum float64
	for k, limit := range s.of {
		sum += acquisition.LogPI(of[k].mean[row], math.Sqrt(of[k].variance[row]), limit.Bound)
	}
	return sum
}

// gradient returns log at the rows of x, and its gradients.
func (s *Limits) gradient(x *mat.Dense) (values []float64, gradients *mat.Dense) {
	n, dim := x.Dims()
	values, gradients = make([]float64, n), mat.NewDense(n, dim, nil)
	for k, m := range s.members {
		g := m.Fantasies.Gradients(x)
		for i := range n {
			sd := math.Sqrt(g.Variance[i])
			z := (s.of[k].Bound - g.Mean[i]) / sd
			value, slope := acquisition.LogCDFGradient(z)
			values[i] += value
			floats.AddScaled(gradients.RawRowView(i), -slope/sd, g.DMean.RawRowView(i))
			floats.AddScaled(gradients.RawRowView(i), -slope*z/(2*g.Variance[i]), g.DVariance.RawRowView(i))
		}
	}
	return values, gradients
}

// expected reports whether the means at a row are within all limits.
func (s *Limits) expected(of []posterior, row int) bool {
	for k, limit := range s.of {
		if !(of[k].mean[row] <= limit.Bound) {
			return false
		}
	}
	return true
}

// split returns the rows of the data within all limits, in their order, and the others, those
// nearest to the limits first.
func (s *Limits) split() (within, outside []int) {
	for row, by := range s.outside {
		if by == 0 {
			within = append(within, row)
		} else {
			outside = append(outside, row)
		}
	}
	slices.SortStableFunc(outside, func(a, b int) int { return cmp.Compare(s.outside[a], s.outside[b]) })
	return within, outside
}

// refresh updates which known places count: observations within all limits, whose rows in the
// data are given, and pending points that are expected to be.
func (s *Limits) refresh(rows []int, known int) {
	for _, m := range s.members {
		m.Mean, m.Variance = m.at.Posterior()
	}
	of := refreshed(s.members)
	s.counts = make([]bool, known)
	for i := range s.counts {
		if i < len(rows) {
			s.counts[i] = s.outside[rows[i]] == 0
		} else {
			s.counts[i] = s.expected(of, i)
		}
	}
}

// counting returns which known places the search improves on: all without limits.
func (l *Loop) counting(place int) bool { return l.Limits == nil || l.Limits.counts[place] }

// searching reports whether there are limits and nothing within them to improve on.
func (l *Loop) searching() bool {
	if l.Limits == nil {
		return false
	}
	if l.Front != nil {
		return len(l.Front.means) == 0
	}
	return math.IsInf(l.Main.Known.Incumbent, 1)
}

// probable returns the logarithm of the probability that a place's evaluation completes, given
// its row in the posteriors, and is within all limits.
func (l *Loop) probable(of []posterior, row int, completes float64) float64 {
	if l.Limits == nil {
		return completes
	}
	return completes + l.Limits.log(of[1+len(l.Others):], row)
}

// LogWithin returns the logarithms of the probabilities that evaluations of the rows of x are within all limits,
// given the points picked so far; zeros without limits.
func (l *Loop) LogWithin(x *mat.Dense) []float64 {
	n, _ := x.Dims()
	logP := make([]float64, n)
	if l.Limits == nil {
		return logP
	}
	of := make([]posterior, len(l.Limits.members))
	for k, m := range l.Limits.members {
		of[k].mean, of[k].variance = m.Fantasies.Posterior(x)
	}
	for row := range logP {
		logP[row] = l.Limits.log(of, row)
	}
	return logP
}

// slopesOfChance returns the logarithms of the probability that evaluations of the rows of x
// complete and are within all limits, and their gradients; nil for certainty.
func (l *Loop) slopesOfChance(x *mat.Dense) (logP []float64, gradients *mat.Dense) {
	if l.Chance.model != nil {
		logP, gradients = l.Chance.model.Gradient(x)
	}
	if l.Limits == nil {
		return logP, gradients
	}
	within, slopes := l.Limits.gradient(x)
	if logP == nil {
		return within, slopes
	}
	floats.Add(within, logP)
	slopes.Add(slopes, gradients)
	return within, slopes
}

// bestRows returns the rows of the best observations, best first, and how many of them are good
// places to search around. Observations outside of limits come last.
func (l *Loop) bestRows() (rows []int, good int) {
	most, good := incumbentsAmong, goodPoints
	if l.Front != nil {
		most = frontAmong
	}
	within, outside := indices.Upto(len(l.Data.Y)), []int(nil)
	if l.Limits != nil {
		within, outside = l.Limits.split()
	}
	switch {
	case l.Front != nil && len(within) > 0:
		rows, good = l.Front.best(within)
	case len(within) > 0:
		rows = lowestAmong(l.Data.Y, within, most)
	}
	rows = append(rows, outside...)
	rows = rows[:min(most, len(rows))]
	return rows, min(good, len(rows))
}

// lowestAmong returns those of the rows with the lowest values, at most n.
func lowestAmong(values []float64, rows []int, n int) []int {
	lowest := Lowest(indices.Pick(values, rows), n)
	for i, k := range lowest {
		lowest[i] = rows[k]
	}
	return lowest
}
