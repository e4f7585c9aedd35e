package tpe

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/study"
)

// column is a coordinate of the unit cube with the kernels that suit its parameter.
type column struct {
	optimizer.Column
	// mean and sd, or shares, are the user's prior; sd is 0 and shares nil without one.
	mean, sd float64
	shares   []float64
}

func newColumn(c optimizer.Column) column {
	of := column{Column: c}
	if prior := c.Parameter.Prior; prior != nil {
		if mean, sd, ok := c.Parameter.UnitPrior(); ok {
			of.mean, of.sd = mean, sd
		} else if c.Unordered() {
			of.shares = study.Shares(prior.Weights)
		} else {
			of.mean, of.sd = momentsOf(prior.Weights)
		}
	}
	return of
}

// believed reports whether the user gave a prior.
func (c *column) believed() bool { return c.sd > 0 || c.shares != nil }

// momentsOf returns the mean and the standard deviation on the unit interval of ordered
// levels with the given weights, at least half a level's width.
func momentsOf(weights []float64) (mean, sd float64) {
	shares, n := study.Shares(weights), float64(len(weights))
	for i, p := range shares {
		mean += p * (float64(i) + 0.5) / n
	}
	var variance float64
	for i, p := range shares {
		d := (float64(i)+0.5)/n - mean
		variance += p * d * d
	}
	return mean, max(math.Sqrt(variance), 0.5/n)
}

// mixture is the kernels of a column: normal distributions cut off at the ends of the
// unit interval, or distributions over choices.
type mixture struct {
	column    *column
	mean, sd  []float64
	logMass   []float64   // of the normal distribution on the unit interval
	constant  []float64   // log density at the mean
	low, mass []float64   // its distribution function at 0, and its mass, for draws
	choices   [][]float64 // of each kernel, if the column has no order
}

// mixture returns the kernels of the points at those places and, last, the wide one.
func (c *column) mixture(at []float64, beliefs bool) mixture {
	if c.Unordered() {
		return mixture{column: c, choices: c.votes(at, beliefs)}
	}
	n := len(at) + 1
	m := mixture{column: c, mean: append(slices.Clone(at), 0.5), sd: append(bandwidths(at), 1)}
	if beliefs && c.sd > 0 {
		m.mean[n-1], m.sd[n-1] = c.mean, c.sd
	}
	m.logMass, m.constant, m.low, m.mass = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for k := range n {
		low, high := -m.mean[k]/m.sd[k], (1-m.mean[k])/m.sd[k]
		m.logMass[k] = logMass(low, high)
		m.constant[k] = -logSqrt2Pi - math.Log(m.sd[k]) - m.logMass[k]
		m.low[k], m.mass[k] = math.Exp(acquisition.LogCDF(low)), math.Exp(m.logMass[k])
	}
	return m
}

// votes returns the distributions over the choices: each point's choice counts 1 more
// than the others, which share what the wide kernel counts.
func (c *column) votes(at []float64, beliefs bool) [][]float64 {
	kernels := make([][]float64, len(at)+1)
	share := 1 / float64(len(kernels))
	for i, u := range at {
		weights := slices.Repeat([]float64{share}, c.Levels)
		weights[c.Level(u)]++
		kernels[i] = study.Shares(weights)
	}
	kernels[len(at)] = slices.Repeat([]float64{1 / float64(c.Levels)}, c.Levels)
	if beliefs && c.shares != nil {
		kernels[len(at)] = c.shares
	}
	return kernels
}

// bandwidths returns the standard deviation of each point's kernel: the distance to the
// farther of its neighbours, where the ends of the interval count only beside a single
// point, and at least a share of the interval that falls with the number of points
// ("magic clip").
func bandwidths(at []float64) []float64 {
	n := len(at)
	order := make([]int, n)
	floats.ArgsortStable(slices.Clone(at), order)
	least := 1 / min(100, float64(n+2))
	sd := make([]float64, n)
	for rank, i := range order {
		before, after := at[i], 1-at[i]
		if rank > 0 {
			before = at[i] - at[order[rank-1]]
		}
		if rank < n-1 {
			after = at[order[rank+1]] - at[i]
		}
		switch {
		case n > 1 && rank == 0:
			before = after
		case n > 1 && rank == n-1:
			after = before
		}
		sd[i] = min(1, max(least, before, after))
	}
	return sd
}

// quantile maps u, uniform on the unit interval, to a draw from kernel k: the place of a
// value.
func (m *mixture) quantile(k int, u float64) float64 {
	c := m.column
	if m.choices != nil {
		choice := 0
		for below := m.choices[k][0]; choice < c.Levels-1 && below <= u; choice++ {
			below += m.choices[k][choice+1]
		}
		return c.Place(choice)
	}
	x := m.mean[k]
	if p := m.low[k] + u*m.mass[k]; p > 0 && p < 1 {
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
	if m.choices != nil {
		choice := c.Level(u)
		for k := range terms {
			terms[k] += math.Log(m.choices[k][choice])
		}
		return
	}
	if c.Smooth() {
		for k := range terms {
			z := (u - m.mean[k]) / m.sd[k]
			terms[k] += m.constant[k] - z*z/2
		}
		return
	}
	low, high := c.Bin(u)
	for k := range terms {
		terms[k] += logMass((low-m.mean[k])/m.sd[k], (high-m.mean[k])/m.sd[k]) - m.logMass[k]
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
