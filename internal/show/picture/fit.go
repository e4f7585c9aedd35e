package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Prediction is what a model that was not shown an evaluation predicts for it: Mean, and
// the range in which it expects the value.
type Prediction struct {
	Trial           int
	Observed        float64
	Mean, Low, High float64
}

// Fit shows predictions against what was observed. A perfect prediction lies on the
// diagonal.
type Fit struct {
	Objective   Objective
	Predictions []Prediction
	// Interval says what Low and High are, such as "95% interval".
	Interval string
}

var _ Picture = (*Fit)(nil)

// SVG implements Picture.
func (p *Fit) SVG(f Frame) []byte {
	c := Chart{X: p.Objective.Name + ", observed", Y: p.Objective.Name + ", predicted without the evaluation"}
	s := Series{Name: "prediction", Kind: Whiskers}
	if p.Interval != "" {
		s.Name += " with its " + p.Interval
	}
	all := slices.Clone(p.Predictions)
	slices.SortStableFunc(all, func(a, b Prediction) int { return cmp.Compare(a.Observed, b.Observed) })
	low, high := math.Inf(1), math.Inf(-1)
	for _, i := range spread(len(all), mostSamples) {
		q := all[i]
		if sum := q.Observed + q.Mean + q.Low + q.High; math.IsNaN(sum) || math.Abs(sum) > largest {
			continue
		}
		low, high = min(low, q.Observed, q.Mean), max(high, q.Observed, q.Mean)
		note := fmt.Sprintf("trial %d: observed %s, predicted %s (%s to %s)", q.Trial, six(q.Observed), six(q.Mean), six(q.Low), six(q.High))
		s.Points = append(s.Points, Point{X: q.Observed, Y: q.Mean, Trial: q.Trial, Note: note})
		s.Low, s.High = append(s.Low, q.Low), append(s.High, q.High)
	}
	if len(s.Points) == 0 {
		return newCanvas(f).empty(c.Y, "There is no model.")
	}
	// The axes follow the values: long intervals are cut at the edge.
	log := logarithmic(low, high)
	c.Across = &Parameter{Name: c.X, Low: low, High: high}
	if log {
		c.Across.Scale = Log
	}
	c.Log, c.Low, c.High = log, low, high
	ends := newSpan(low, high, log)
	c.Series = []Series{
		{Name: "as observed", Kind: Lines, Thin: true, Color: 5, Dash: 1, Points: []Point{{X: ends.low, Y: ends.low},
			{X: ends.high, Y: ends.high}}},
		s,
	}
	c.Description = fmt.Sprintf("Predictions of the model for %d evaluations that it was not shown, against the observed %s.", len(s.Points),
		p.Objective.Name)
	return c.SVG(f)
}
