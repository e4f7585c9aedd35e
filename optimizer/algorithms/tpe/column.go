package tpe

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
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
