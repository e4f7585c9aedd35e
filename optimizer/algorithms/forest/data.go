package forest

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// inactive is the number of a parameter that is inactive: below those of all values, so
// that a split can part the points where the parameter is active from the others.
const inactive = -1

// coder turns points into rows of the forest's data.
type coder struct {
	encoding *optimizer.Encoding
	features []feature
}

func newCoder(e *optimizer.Encoding) *coder {
	c := &coder{encoding: e}
	for _, column := range e.Columns() {
		f := feature{}
		if column.Categorical() {
			f.choices = column.Levels + 1 // the last one is inactive
		}
		c.features = append(c.features, f)
	}
	return c
}

// row returns the row of a point.
func (c *coder) row(p study.Point) []float64 { return c.rowAt(p, c.encoding.Encode(p)) }

// rowAt is row for a point whose coordinates are at; it does not change them.
func (c *coder) rowAt(p study.Point, at []float64) []float64 {
	x := slices.Clone(at)
	for i, column := range c.encoding.Columns() {
		_, active := p[column.Parameter.Name]
		choices := c.features[i].choices
		switch {
		case choices > 0 && active:
			x[i] = float64(column.Level(x[i]))
		case choices > 0:
			x[i] = float64(choices - 1)
		case !active:
			x[i] = inactive
		}
	}
	return x
}

// outcomes returns the values of the observations as the forest models them: their
// logarithms after the range from a little below the best to the worst was scaled to 1,
// which shows differences among the good ones (as SMAC does). A failed evaluation has the
// worst value. One that was stopped early has the value that it would probably have reached, but no better
// than the best and no worse than the worst of the completed ones.
func outcomes(p *optimizer.Problem) []float64 {
	values := make([]float64, len(p.Observations))
	var completed []float64
	for i, o := range p.Observations {
		values[i] = math.Inf(1)
		if o.Outcome == optimizer.OutcomeCompleted {
			values[i] = quarter(p, o)
			completed = append(completed, values[i])
		}
	}
	if len(completed) == 0 {
		return make([]float64, len(values))
	}
	slices.Sort(completed)
	best, worst := completed[0], completed[len(completed)-1]
	low := best - (completed[len(completed)/20] - best)
	span := worst - low
	if !(span > 0) {
		return failuresWorse(p, values)
	}
	for i, o := range p.Observations {
		if o.Outcome == optimizer.OutcomePruned && len(o.Values) > 0 {
			values[i] = max(quarter(p, o), best)
		}
	}
	for i, v := range values {
		values[i] = math.Log(max(least, (min(v, worst)-low)/span))
	}
	return values
}

// quarter returns a quarter of the observation's value, lower better, so that no
// difference between two of them overflows.
func quarter(p *optimizer.Problem, o optimizer.Observation) float64 {
	return min(math.MaxFloat64, max(-math.MaxFloat64, p.Direction.Cost(o.Values.First()))) / 4
}

// least is the least share of the range whose logarithm is taken.
const least = 1e-5

// failuresWorse sets failures apart where all completed values are equal.
func failuresWorse(p *optimizer.Problem, values []float64) []float64 {
	for i, o := range p.Observations {
		values[i] = 0
		if o.Outcome != optimizer.OutcomeCompleted {
			values[i] = 1
		}
	}
	return values
}
