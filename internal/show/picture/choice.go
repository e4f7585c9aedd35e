package picture

import (
	"cmp"
	"fmt"
	"math"
)

// Choice shows, along one parameter, what a model expected when it chose a point. The line
// goes through that point. Evaluations and pending points are marked where they are along
// the parameter; their other parameters may differ.
type Choice struct {
	Objective Objective
	Parameter Parameter
	// Axis is the parameter's place among Evaluation.At.
	Axis int
	// At are places on the parameter's axis, in order; Mean, Low and High have a value
	// for each. Here is the place of the chosen point among them.
	At, Mean, Low, High []float64
	Here                int
	// Trial is the number of the chosen point's trial.
	Trial int
	// Evaluated are the evaluations that had ended, Pending the points that had not.
	Evaluated, Pending []Evaluation
}

var _ Picture = (*Choice)(nil)

// mostChoiceMarks is the maximum number of dots, and of marks in a lane.
const mostChoiceMarks = 120

// SVG implements Picture.
func (k *Choice) SVG(f Frame) []byte {
	p := &k.Parameter
	c := Chart{X: p.axisName(), Y: k.Objective.Caption(), Across: p, Height: 180}
	f.Title = cmp.Or(f.Title, p.Name)
	model, values := p.expected("expected, with 95% band", k.At, k.Mean, k.Low, k.High)
	if model.Kind == Whiskers {
		model.Name = "expected, with 95% range"
	}
	if len(model.Points) == 0 {
		return newCanvas(f).empty(c.Y, "There is no model.")
	}
	dots, lanes := along(k.Evaluated, k.Axis)
	c.Low, c.High, c.Log = k.Objective.window(append(values, ys(dots)...), ys(model.Points))
	if c.Low == c.High {
		c.Low, c.High = 0, 0
	}
	shown := p.notes(pick(dots, thinned(dots, mostChoiceMarks)), k.Evaluated, k.Objective)
	name := "evaluated before"
	if len(shown) < len(dots) {
		name = fmt.Sprintf("%d of %d evaluated before", len(shown), len(dots))
	}
	c.Series = []Series{{Name: name, Kind: Dots, Points: shown}, model, chosen(k.Trial, k.Here, model.Points)}
	c.Lanes = append(c.Lanes, pendingLane(p, k.Axis, k.Pending))
	for _, lane := range lanes {
		if lane.Name == string(Infeasible) {
			lane.Mark = '×' // rings are pending
		}
		lane = lane.thinned(mostChoiceMarks)
		p.notes(lane.Points, k.Evaluated, k.Objective)
		c.Lanes = append(c.Lanes, lane)
	}
	c.Description = fmt.Sprintf("What the model expected of %s along %s, through the point of trial %d.", k.Objective.Caption(),
		p.axisName(), k.Trial)
	return c.SVG(f)
}

// chosen marks the chosen point on a line.
func chosen(trial, here int, line []Point) Series {
	s := Series{Name: fmt.Sprintf("trial %d", trial), Kind: Dots, Sign: Diamond, Color: 3}
	for _, p := range line {
		if p.place == here {
			p.Trial, p.Note = trial, fmt.Sprintf("trial %d: %s", trial, p.Note)
			s.Points = []Point{p}
		}
	}
	return s
}

// pendingLane returns the points that were pending.
func pendingLane(p *Parameter, axis int, pending []Evaluation) Lane {
	lane := Lane{Name: "pending", Mark: '○'}
	for _, e := range pending {
		if at := e.At[axis]; !math.IsNaN(at) {
			lane.Points = append(lane.Points, Point{X: at, Trial: e.Trial, Note: fmt.Sprintf("trial %d: %s = %s, pending", e.Trial, p.Name,
				p.text(at))})
		}
	}
	sortPoints(lane.Points)
	return lane.thinned(mostChoiceMarks)
}

// Acquisition shows, along one parameter, how much each place was worth evaluating when a
// point was chosen. The line goes through that point.
type Acquisition struct {
	Parameter Parameter
	// Axis is the parameter's place among Evaluation.At.
	Axis int
	// Function names the acquisition function.
	Function string
	// At are places on the parameter's axis, in order, and Worth has a value for each. Here
	// is the place of the chosen point among them. Values are shares of the largest one.
	At, Worth []float64
	Here      int
	// Trial is the number of the chosen point's trial.
	Trial   int
	Pending []Evaluation
}

var _ Picture = (*Acquisition)(nil)

// SVG implements Picture.
func (k *Acquisition) SVG(f Frame) []byte {
	p := &k.Parameter
	caption := k.Function + ", as a share of the highest"
	c := Chart{X: p.axisName(), Y: caption, Across: p, High: 1, Height: 130, Lanes: []Lane{pendingLane(p, k.Axis, k.Pending)}}
	f.Title = cmp.Or(f.Title, p.Name)
	line := Series{Name: "worth evaluating", Kind: Lines, Color: 2}
	for i := range min(len(k.At), len(k.Worth)) {
		if !math.IsNaN(k.At[i] + k.Worth[i]) {
			line.Points = append(line.Points, Point{X: k.At[i], Y: k.Worth[i], Note: fmt.Sprintf("%s = %s: %s", p.Name, p.text(k.At[i]),
				six(k.Worth[i])), place: i})
		}
	}
	if len(line.Points) == 0 {
		return newCanvas(f).empty(caption, "There is no acquisition function.")
	}
	if len(p.Levels) > 0 { // bars from the bottom
		line.Kind, line.High = Whiskers, ys(line.Points)
		line.Low = make([]float64, len(line.High))
	}
	c.Series = []Series{line, chosen(k.Trial, k.Here, line.Points)}
	c.Description = fmt.Sprintf("How much each place along %s was worth evaluating, by %s, through the point of trial %d.", p.axisName(),
		k.Function, k.Trial)
	return c.SVG(f)
}
