package picture

import (
	"fmt"
	"slices"
)

// Curve is what an evaluation reported, step by step, in the order of the steps.
type Curve struct {
	Trial  int
	State  State
	Steps  []int64
	Values []float64
}

// Curves shows what evaluations reported while they ran. The curve of the best trial is
// drawn thickly, those of pruned trials end in a triangle.
type Curves struct {
	// Objective is the metric that was reported, and its direction.
	Objective Objective
	Curves    []Curve
	// Best is the best trial; 0 for none.
	Best int
	// Of is how many trials have curves, if Curves has only some of them.
	Of int
}

var _ Picture = (*Curves)(nil)

const (
	// mostCurves limits the curves in a picture, mostSteps the points of each.
	mostCurves = 150
	mostSteps  = 120
)

// SVG implements Picture.
func (c *Curves) SVG(f Frame) []byte {
	chart := Chart{X: "step", Y: c.Objective.Caption()}
	var best, pruned *Series
	var values, good []float64
	of := max(c.Of, len(c.Curves))
	for k, i := range c.chosen() {
		curve := &c.Curves[i]
		s := Series{Name: fmt.Sprintf("trial %d", curve.Trial), Kind: Lines, Faint: true}
		note := fmt.Sprintf("trial %d, %s", curve.Trial, curve.State)
		for i := range min(len(curve.Steps), len(curve.Values)) {
			s.Points = append(s.Points, Point{X: float64(curve.Steps[i]), Y: curve.Values[i], Trial: curve.Trial, Note: note})
		}
		s.Points = usable(s.Points)
		s.Points = pick(s.Points, thinned(s.Points, mostSteps))
		if len(s.Points) == 0 {
			continue
		}
		last := s.Points[len(s.Points)-1]
		for _, p := range s.Points {
			values = append(values, p.Y)
		}
		good = append(good, last.Y)
		switch {
		case curve.Trial == c.Best && best == nil:
			s.Faint = false
			s.Name = fmt.Sprintf("best: trial %d", curve.Trial)
			best = &s
			continue
		case curve.State == Pruned:
			if pruned == nil {
				pruned = &Series{Kind: Dots, Sign: ColorDot, Color: 3}
			}
			pruned.Points = append(pruned.Points, last)
		}
		if k == 0 || len(chart.Series) == 0 {
			s.Faint, s.Thin, s.Color = false, true, 5
			s.Name = "trials"
			if n := len(c.chosen()); n < of {
				s.Name = fmt.Sprintf("trials (%d of %d)", n, of)
			}
		}
		chart.Series = append(chart.Series, s)
	}
	if len(values) == 0 {
		return newCanvas(f).empty(chart.Y, "No trial reported values while it ran.")
	}
	if pruned != nil {
		pruned.Name = fmt.Sprintf("pruned (%d)", len(pruned.Points))
		chart.Series = append(chart.Series, *pruned)
	}
	if best != nil {
		chart.Series = append(chart.Series, *best)
	}
	chart.Low, chart.High, chart.Log = c.Objective.window(values, good)
	chart.Description = fmt.Sprintf("The values that %d trials reported, by step (%s).", of, c.Objective.Caption())
	return chart.SVG(f)
}

// chosen returns the indices of the curves to draw: all, or an even share of them that
// includes the best one.
func (c *Curves) chosen() []int {
	chosen := spread(len(c.Curves), mostCurves)
	if len(chosen) == len(c.Curves) {
		return chosen
	}
	best := slices.IndexFunc(c.Curves, func(k Curve) bool { return k.Trial == c.Best })
	if best >= 0 && !slices.Contains(chosen, best) {
		chosen[len(chosen)-1] = best
	}
	return chosen
}
