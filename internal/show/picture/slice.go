package picture

import (
	"cmp"
	"fmt"
	"slices"
)

// Slice shows the value of each evaluation against one parameter. Failed and pruned
// evaluations have lanes.
type Slice struct {
	Objective Objective
	Parameter Parameter
	// Axis is the parameter's place among Evaluation.At.
	Axis        int
	Evaluations []Evaluation
	// Best is the best trial; 0 for none.
	Best int
	// Most is the maximum number of dots; mostSamples if it is 0.
	Most int
	// Expected, unless it is nil, is what a model expects along the same parameter, of which only the numbers count.
	Expected *Dependence
}

var _ Picture = (*Slice)(nil)

// mostSamples is the maximum number of dots of a slice and of what is like it.
const mostSamples = 600

// SVG implements Picture.
func (s *Slice) SVG(f Frame) []byte {
	p := &s.Parameter
	c := Chart{X: p.axisName(), Y: s.Objective.Caption(), Across: p, Height: 200}
	f.Title = cmp.Or(f.Title, p.Name)
	dots, lanes := along(s.Evaluations, s.Axis)
	n := len(dots)
	for _, lane := range lanes {
		n += len(lane.Points)
	}
	if n == 0 {
		return newCanvas(f).empty(c.Y, "The parameter was active in no evaluation.")
	}
	var model Series
	var ends []float64
	if d := s.Expected; d != nil {
		model, ends = p.expected("expected by the model, with 95%", d.At, d.Mean, d.Low, d.High)
	}
	c.Low, c.High, c.Log = s.Objective.window(append(ends, ys(dots)...), ys(model.Points))
	most := min(mostSamples, cmp.Or(s.Most, mostSamples))
	name := "evaluation"
	shown := p.notes(pick(dots, thinned(dots, most)), s.Evaluations, s.Objective)
	if len(shown) < len(dots) {
		name = fmt.Sprintf("%d of %d", len(shown), len(dots))
	}
	c.Series = []Series{{Name: name, Kind: Dots, Points: shown}}
	if len(model.Points) > 0 {
		c.Series = append(c.Series, model)
	}
	if i := slices.IndexFunc(dots, func(p Point) bool { return p.Trial == s.Best }); i >= 0 {
		c.Series = append(c.Series, Series{Name: "best", Kind: Dots, Sign: Ring, Color: 1,
			Points: p.notes(dots[i:i+1], s.Evaluations, s.Objective)})
	}
	for _, lane := range lanes {
		lane = lane.thinned(most / 4)
		p.notes(lane.Points, s.Evaluations, s.Objective)
		c.Lanes = append(c.Lanes, lane)
	}
	c.Description = fmt.Sprintf("%s against %s, for %d evaluations.", s.Objective.Caption(), p.axisName(), n)
	return c.SVG(f)
}

// axisName names the parameter and its scale.
func (p *Parameter) axisName() string {
	if len(p.Levels) > 0 || p.Scale == Linear {
		return p.Name
	}
	return p.Name + " (" + string(p.Scale) + " scale)"
}

// Dependence shows what a model expects along one parameter, on average over all others,
// with the band in which it expects most values.
type Dependence struct {
	Objective Objective
	Parameter Parameter
	// At are places on the parameter's axis, in order; Mean, Low and High have a value
	// for each.
	At, Mean, Low, High []float64
}

var _ Picture = (*Dependence)(nil)

// SVG implements Picture.
func (d *Dependence) SVG(f Frame) []byte {
	p := &d.Parameter
	c := Chart{X: p.axisName(), Y: d.Objective.Caption(), Across: p, Height: 200}
	f.Title = cmp.Or(f.Title, p.Name)
	s, ends := p.expected("expected by the model", d.At, d.Mean, d.Low, d.High)
	if len(s.Points) == 0 {
		return newCanvas(f).empty(c.Y, "There is no model.")
	}
	c.Log = logarithmic(slices.Min(ends), slices.Max(ends))
	c.Series = []Series{s}
	c.Description = fmt.Sprintf("What the model expects of %s along %s.", d.Objective.Caption(), p.axisName())
	return c.SVG(f)
}
