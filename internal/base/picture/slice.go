package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Sample is an evaluation's place on a parameter's axis. At is NaN if the parameter was
// not active. Value counts only for a completed one.
type Sample struct {
	Trial int
	At    float64
	State State
	Value float64
}

// Slice shows the value of each evaluation against one parameter. Failed and pruned
// evaluations have lanes.
type Slice struct {
	Objective Objective
	Parameter Parameter
	// Samples are in the order in which the evaluations ended.
	Samples []Sample
	// Best is the best trial; 0 for none.
	Best int
	// Most is the maximum number of dots; mostSamples if it is 0.
	Most int
}

var _ Picture = (*Slice)(nil)

// mostSamples is the maximum number of dots of a slice and of what is like it.
const mostSamples = 600

// SVG implements Picture.
func (s *Slice) SVG(f Frame) []byte {
	c := Chart{X: s.Parameter.axisName(), Y: s.Objective.caption(), Across: &s.Parameter, Height: 200}
	f.Title = cmp.Or(f.Title, s.Parameter.Name)
	samples := slices.DeleteFunc(slices.Clone(s.Samples), func(e Sample) bool { return math.IsNaN(e.At) })
	slices.SortFunc(samples, func(a, b Sample) int { return cmp.Or(compare(a.At, b.At), a.Trial-b.Trial) })
	var dots, best []Point
	lanes := []Lane{{Name: string(Failed), Mark: '×'}, {Name: string(Infeasible), Mark: '○'}, {Name: string(Pruned), Mark: '▽'}}
	for _, e := range samples {
		p := Point{X: e.At, Y: e.Value, Trial: e.Trial}
		if e.State == Completed && !math.IsNaN(e.Value) {
			dots = append(dots, p)
			if e.Trial == s.Best {
				best = []Point{p}
			}
		}
		for i := range lanes {
			if State(lanes[i].Name) == e.State {
				lanes[i].Points = append(lanes[i].Points, p)
			}
		}
	}
	if len(samples) == 0 {
		return newCanvas(f).empty(c.Y, "The parameter was active in no evaluation.")
	}
	values := make([]float64, len(dots))
	for i, p := range dots {
		values[i] = p.Y
	}
	c.Low, c.High, c.Log = s.Objective.window(values, nil)
	name := "evaluation"
	most := mostSamples
	if s.Most > 0 {
		most = min(most, s.Most)
	}
	shown := pick(dots, thinned(dots, most))
	if len(shown) < len(dots) {
		name = fmt.Sprintf("%d of %d", len(shown), len(dots))
	}
	note := func(p *Point, more string) {
		p.Note = fmt.Sprintf("trial %d: %s = %s, %s", p.Trial, s.Parameter.Name, s.Parameter.text(p.X), more)
	}
	for i := range shown {
		note(&shown[i], s.Objective.Name+" "+six(shown[i].Y))
	}
	for i := range best {
		note(&best[i], s.Objective.Name+" "+six(best[i].Y))
	}
	c.Series = []Series{{Name: name, Kind: Dots, Points: shown}}
	if best != nil {
		c.Series = append(c.Series, Series{Name: "best", Kind: Dots, Sign: Ring, Color: 1, Points: best})
	}
	for i := range lanes {
		lane := lanes[i].thinned(most / 4)
		for k := range lane.Points {
			note(&lane.Points[k], lane.Name)
		}
		c.Lanes = append(c.Lanes, lane)
	}
	c.Description = fmt.Sprintf("%s against %s, for %d evaluations.", s.Objective.caption(), s.Parameter.axisName(), len(samples))
	return c.SVG(f)
}

// compare orders numbers.
func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
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
	c := Chart{X: d.Parameter.axisName(), Y: d.Objective.caption(), Across: &d.Parameter, Height: 200}
	f.Title = cmp.Or(f.Title, d.Parameter.Name)
	s := Series{Name: "expected by the model", Kind: Lines}
	if len(d.Parameter.Levels) > 0 {
		s.Kind = Whiskers
	}
	all := []float64{}
	for i := range min(len(d.At), len(d.Mean), len(d.Low), len(d.High)) {
		if math.IsNaN(d.At[i] + d.Mean[i] + d.Low[i] + d.High[i]) {
			continue
		}
		note := fmt.Sprintf("%s = %s: %s, between %s and %s", d.Parameter.Name, d.Parameter.text(d.At[i]), six(d.Mean[i]), six(d.Low[i]), six(d.High[i]))
		s.Points = append(s.Points, Point{X: d.At[i], Y: d.Mean[i], Note: note})
		s.Low, s.High = append(s.Low, d.Low[i]), append(s.High, d.High[i])
		all = append(all, d.Low[i], d.High[i])
	}
	if len(s.Points) == 0 {
		return newCanvas(f).empty(c.Y, "There is no model.")
	}
	c.Log = logarithmic(slices.Min(all), slices.Max(all))
	c.Series = []Series{s}
	c.Description = fmt.Sprintf("What the model expects of %s along %s.", d.Objective.caption(), d.Parameter.axisName())
	return c.SVG(f)
}
