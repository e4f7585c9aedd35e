package tpe

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/study"
)

// normals are normal distributions cut off at the ends of the unit interval.
type normals struct {
	mean, sd []float64
	logMass  []float64 // on the unit interval, of the distribution that is not cut off
	constant []float64 // log density at the mean
}

// resize makes room for n distributions, and keeps those that there are.
func (d *normals) resize(n int) {
	for _, list := range []*[]float64{&d.mean, &d.sd, &d.logMass, &d.constant} {
		*list = resized(*list, n)
	}
}

// resized returns a list with n elements: its own, and any others after them.
func resized[T any](list []T, n int) []T { return slices.Grow(list, max(0, n-len(list)))[:n] }

// set sets the k-th distribution.
func (d *normals) set(k int, mean, sd float64) {
	d.mean[k], d.sd[k] = mean, sd
	d.logMass[k] = logMass(-mean/sd, (1-mean)/sd)
	d.constant[k] = -logSqrt2Pi - math.Log(sd) - d.logMass[k]
}

// mixture is the kernels of a column: one for each point and, last, the wide one.
type mixture struct {
	column *column
	// normals are the kernels of a column with an order. Of others, only mean is used: the points.
	normals
	order []int // the points by place, the earlier first where places are equal
	// classes number the kernels' distributions, if many kernels share one: nil if the column is
	// smooth. first is a kernel of each class.
	classes []int32
	first   []int
	choices [][]float64 // the distributions by class, if the column has no order
	values  []float64   // scratch: a number for each class
}

// mixture returns the kernels of the points at those places and, last, the wide one.
func (c *column) mixture(at []float64, beliefs bool) mixture {
	m := mixture{column: c, normals: normals{mean: slices.Clone(at)}}
	if c.Unordered() {
		m.vote(beliefs)
		return m
	}
	n := len(at)
	m.order = sorted(0, n, at)
	m.spread()
	for k := range n {
		m.set(k, m.mean[k], m.sd[k])
	}
	m.set(n, 0.5, 1)
	if beliefs && c.sd > 0 {
		m.set(n, c.mean, c.sd)
	}
	m.classify()
	return m
}

// vote sets the distributions over the choices: each point's choice counts 1 more
// than the others, which share what the wide kernel counts.
func (m *mixture) vote(beliefs bool) {
	c, n := m.column, len(m.mean)
	share := 1 / float64(n+1)
	m.classes, m.choices = resized(m.classes, n+1), resized(m.choices, c.Levels+1)
	clear(m.choices)
	for k, u := range m.mean {
		level := c.Level(u)
		if m.classes[k] = int32(level); m.choices[level] == nil {
			weights := slices.Repeat([]float64{share}, c.Levels)
			weights[level]++
			m.choices[level] = study.Shares(weights)
		}
	}
	m.classes[n] = int32(c.Levels)
	m.choices[c.Levels] = slices.Repeat([]float64{1 / float64(c.Levels)}, c.Levels)
	if beliefs && c.shares != nil {
		m.choices[c.Levels] = c.shares
	}
}

// spread makes room for the kernels, and sets the standard deviation of each point's: the distance
// to the farther of its neighbours, where the ends of the interval count only beside a single
// point, and at least a share of the interval that falls with the number of points
// ("magic clip").
func (m *mixture) spread() {
	n := len(m.order)
	m.resize(n + 1)
	least := 1 / min(100, float64(n+2))
	for rank, i := range m.order {
		at := m.mean[i]
		before, after := at, 1-at
		if rank > 0 {
			before = at - m.mean[m.order[rank-1]]
		}
		if rank < n-1 {
			after = m.mean[m.order[rank+1]] - at
		}
		switch {
		case n > 1 && rank == 0:
			before = after
		case n > 1 && rank == n-1:
			after = before
		}
		m.sd[i] = min(1, max(least, before, after))
	}
}

// classify numbers the kernels of a column with levels by their distributions. Those of a level are
// next to each other in the order, and most have the same standard deviation.
func (m *mixture) classify() {
	if m.column.Smooth() {
		return
	}
	m.classes, m.first = resized(m.classes, len(m.mean)), m.first[:0]
	for rank, k := range m.order {
		if last := m.order[max(0, rank-1)]; rank == 0 || m.mean[last] != m.mean[k] || m.sd[last] != m.sd[k] {
			m.first = append(m.first, k)
		}
		m.classes[k] = int32(len(m.first) - 1)
	}
	wide := len(m.order)
	m.classes[wide] = int32(len(m.first))
	m.first = append(m.first, wide)
}

// quantile maps u, uniform on the unit interval, to a draw from kernel k: the place of a
// value.
func (m *mixture) quantile(k int, u float64) float64 {
	c := m.column
	if c.Unordered() {
		shares, choice := m.choices[m.classes[k]], 0
		for below := shares[0]; choice < c.Levels-1 && below <= u; choice++ {
			below += shares[choice+1]
		}
		return c.Place(choice)
	}
	x := m.mean[k]
	low, mass := math.Exp(acquisition.LogCDF(-m.mean[k]/m.sd[k])), math.Exp(m.logMass[k])
	if p := low + u*mass; p > 0 && p < 1 {
		x = min(1, max(0, m.mean[k]+m.sd[k]*mathext.NormalQuantile(p)))
	}
	if c.Levels > 0 {
		x = c.Parameter.ToUnit(c.Parameter.FromUnit(x))
	}
	return x
}

// addLogs adds to each kernel's term the logarithm of its density at u.
func (m *mixture) addLogs(terms []float64, u float64) {
	c := m.column
	switch {
	case c.Unordered():
		choice := c.Level(u)
		m.values = resized(m.values, len(m.choices))
		for i, shares := range m.choices {
			if shares != nil {
				m.values[i] = math.Log(shares[choice])
			}
		}
	case c.Smooth():
		mean, sd, constant := m.mean[:len(terms)], m.sd[:len(terms)], m.constant[:len(terms)]
		for k := range terms {
			z := (u - mean[k]) / sd[k]
			terms[k] += constant[k] - z*z/2
		}
		return
	default:
		low, high := c.Bin(u)
		m.values = resized(m.values, len(m.first))
		for i, k := range m.first {
			m.values[i] = logMass((low-m.mean[k])/m.sd[k], (high-m.mean[k])/m.sd[k]) - m.logMass[k]
		}
	}
	for k, class := range m.classes[:len(terms)] {
		terms[k] += m.values[class]
	}
}

// logSqrt2Pi is ½ ln(2π).
const logSqrt2Pi = 0.918938533204672741780329736405617639861397473637783412817

// logMass returns the logarithm of the standard normal distribution's mass between low
// and high, without the cancellation of a difference far from 0.
func logMass(low, high float64) float64 {
	if low > 0 {
		low, high = -high, -low
	}
	if high <= 0 {
		upper := acquisition.LogCDF(high)
		return upper + math.Log1p(-math.Exp(acquisition.LogCDF(low)-upper))
	}
	// The interval contains 0: what lies outside is at most ½ on either side.
	return math.Log1p(-math.Exp(acquisition.LogCDF(low)) - math.Exp(acquisition.LogCDF(-high)))
}
