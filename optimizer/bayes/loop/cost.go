package loop

import (
	"fmt"

	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer/duration"
	"github.com/fantasia-hpo/fantasia/study"
)

// Cost makes evaluations that are expected to take long, or to cost much, less attractive: the acquisition function is divided by the
// expected time or cost to the power Power.
type Cost struct {
	Times *duration.Model
	Power float64
	// Unit is what Times are counted in if they are costs; empty for seconds.
	Unit string
}

// term returns the contribution of the expected time to the logarithm of the acquisition function. It adds its
// gradient to dst unless dst is nil.
func (c *Cost) term(dst, x []float64) float64 {
	if c == nil {
		return 0
	}
	return -c.Power * c.Times.Log(dst, x, -c.Power)
}

// addTerms adds the term of each place to values.
func (c *Cost) addTerms(values []float64, places []Place) {
	if c == nil {
		return
	}
	x := make([][]float64, len(places))
	for i := range places {
		x[i] = places[i].X
	}
	floats.AddScaled(values, -c.Power, c.Times.Logs(x))
}

// note tells people what is expected of a point.
func (c *Cost) note(p study.Point) string {
	if c == nil {
		return ""
	}
	median := c.Times.At(p)[0].Median()
	if c.Unit != "" {
		return fmt.Sprintf("; expected to cost %.3g %s", median, c.Unit)
	}
	return fmt.Sprintf("; expected to take %.3g s", median)
}
