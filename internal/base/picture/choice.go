package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Choice shows, along one parameter, what a model expected when it chose a point. The line
// goes through that point. Evaluations and pending points are marked where they are along
// the parameter; their other parameters may differ.
type Choice struct {
	Objective Objective
	Parameter Parameter
	// At are places on the parameter's axis, in order; Mean, Low and High have a value
	// for each. Here is the place of the chosen point among them.
	At, Mean, Low, High []float64
	Here                int
	// Trial is the number of the chosen point's trial.
	Trial int
	// Evaluated are the evaluations that had ended, Pending the points that had not.
	Evaluated, Pending []Sample
}

var _ Picture = (*Choice)(nil)

// mostChoiceMarks is the maximum number of dots, and of marks in a lane.
const mostChoiceMarks = 120

// SVG implements Picture.
func (k *Choice) SVG(f Frame) []byte {
	c := Chart{X: k.Parameter.axisName(), Y: k.Objective.caption(), Across: &k.Parameter, Height: 180}
	f.Title = cmp.Or(f.Title, k.Parameter.Name)
	n := min(len(k.At), len(k.Mean), len(k.Low), len(k.High))
	model := Series{Name: "expected, with 95% band", Kind: Lines}
	if len(k.Parameter.Levels) > 0 {
		model.Name, model.Kind = "expected, with 95% range", Whiskers
	}
	var values, keep []float64
	var chosen []Point
	for i := range n {
		if math.IsNaN(k.At[i] + k.Mean[i] + k.Low[i] + k.High[i]) {
			continue
		}
		p := Point{X: k.At[i], Y: k.Mean[i], Note: fmt.Sprintf("%s = %s: %s expected, between %s and %s", k.Parameter.Name, k.Parameter.text(k.At[i]), six(k.Mean[i]), six(k.Low[i]), six(k.High[i]))}
		model.Points, model.Low, model.High = append(model.Points, p), append(model.Low, k.Low[i]), append(model.High, k.High[i])
		values, keep = append(values, k.Low[i], k.High[i]), append(keep, k.Mean[i])
		if i == k.Here {
			p.Trial, p.Note = k.Trial, fmt.Sprintf("trial %d: %s", k.Trial, p.Note)
			chosen = []Point{p}
		}
	}
	if len(model.Points) == 0 {
		return newCanvas(f).empty(c.Y, "There is no model.")
	}
	dots, lanes := k.marks()
	for _, p := range dots {
		values = append(values, p.Y)
	}
	c.Low, c.High, c.Log = k.Objective.window(values, keep)
	if c.Low == c.High {
		c.Low, c.High = 0, 0
	}
	shown := pick(dots, thinned(dots, mostChoiceMarks))
	name := "evaluated before"
	if len(shown) < len(dots) {
		name = fmt.Sprintf("%d of %d evaluated before", len(shown), len(dots))
	}
	c.Series = []Series{{Name: name, Kind: Dots, Points: shown}, model, {Name: fmt.Sprintf("trial %d", k.Trial), Kind: Dots, Sign: Diamond, Color: 3, Points: chosen}}
	c.Lanes = lanes
	c.Description = fmt.Sprintf("What the model expected of %s along %s, through the point of trial %d.", k.Objective.caption(), k.Parameter.axisName(), k.Trial)
	return c.SVG(f)
}

// marks returns the completed evaluations as dots, and the pending points and those
// without a value as lanes.
func (k *Choice) marks() (dots []Point, lanes []Lane) {
	lanes = []Lane{pendingLane(&k.Parameter, k.Pending), {Name: string(Failed), Mark: '×'}, {Name: string(Infeasible), Mark: '×'}, {Name: string(Pruned), Mark: '▽'}}
	for _, e := range k.Evaluated {
		if math.IsNaN(e.At) {
			continue
		}
		p := Point{X: e.At, Y: e.Value, Trial: e.Trial, Note: fmt.Sprintf("trial %d: %s = %s, ", e.Trial, k.Parameter.Name, k.Parameter.text(e.At))}
		if e.State == Completed && !math.IsNaN(e.Value) {
			p.Note += k.Objective.Name + " " + six(e.Value)
			dots = append(dots, p)
			continue
		}
		p.Note += string(e.State)
		for i := range lanes {
			if lanes[i].Name == string(e.State) {
				lanes[i].Points = append(lanes[i].Points, p)
			}
		}
	}
	sortPoints(dots)
	for i := range lanes {
		sortPoints(lanes[i].Points)
		lanes[i] = lanes[i].thinned(mostChoiceMarks)
	}
	return dots, lanes
}

func sortPoints(points []Point) {
	slices.SortFunc(points, func(a, b Point) int { return cmp.Or(compare(a.X, b.X), a.Trial-b.Trial) })
}

// pendingLane returns the points that were pending.
func pendingLane(p *Parameter, pending []Sample) Lane {
	lane := Lane{Name: "pending", Mark: '○'}
	for _, s := range pending {
		if !math.IsNaN(s.At) {
			lane.Points = append(lane.Points, Point{X: s.At, Trial: s.Trial, Note: fmt.Sprintf("trial %d: %s = %s, pending", s.Trial, p.Name, p.text(s.At))})
		}
	}
	sortPoints(lane.Points)
	return lane
}

// Acquisition shows, along one parameter, how much each place was worth evaluating when a
// point was chosen. The line goes through that point.
type Acquisition struct {
	Parameter Parameter
	// Function names the acquisition function.
	Function string
	// At are places on the parameter's axis, in order, and Worth has a value for each. Here
	// is the place of the chosen point among them.
	At, Worth []float64
	Here      int
	// Share means that values are shares of the largest one.
	Share bool
	// Trial is the number of the chosen point's trial.
	Trial   int
	Pending []Sample
}

var _ Picture = (*Acquisition)(nil)

// SVG implements Picture.
func (k *Acquisition) SVG(f Frame) []byte {
	caption := k.Function + ", higher is better"
	if k.Share {
		caption = k.Function + ", as a share of the highest"
	}
	c := Chart{X: k.Parameter.axisName(), Y: caption, Across: &k.Parameter, Height: 130, Lanes: []Lane{pendingLane(&k.Parameter, k.Pending).thinned(mostChoiceMarks)}}
	f.Title = cmp.Or(f.Title, k.Parameter.Name)
	line := Series{Name: "worth evaluating", Kind: Lines, Color: 2}
	levels := len(k.Parameter.Levels) > 0
	if levels {
		line.Kind = Whiskers
	}
	var chosen []Point
	low := 0.0
	for i := range min(len(k.At), len(k.Worth)) {
		if k.Worth[i] < low {
			low = k.Worth[i]
		}
	}
	for i := range min(len(k.At), len(k.Worth)) {
		if math.IsNaN(k.At[i] + k.Worth[i]) {
			continue
		}
		p := Point{X: k.At[i], Y: k.Worth[i], Note: fmt.Sprintf("%s = %s: %s", k.Parameter.Name, k.Parameter.text(k.At[i]), six(k.Worth[i]))}
		line.Points = append(line.Points, p)
		if levels {
			line.Low, line.High = append(line.Low, low), append(line.High, k.Worth[i])
		}
		if i == k.Here {
			p.Trial, p.Note = k.Trial, fmt.Sprintf("trial %d: %s", k.Trial, p.Note)
			chosen = []Point{p}
		}
	}
	if len(line.Points) == 0 {
		return newCanvas(f).empty(caption, "There is no acquisition function.")
	}
	if k.Share {
		c.Low, c.High = 0, 1
	}
	c.Series = []Series{line, {Name: fmt.Sprintf("trial %d", k.Trial), Kind: Dots, Sign: Diamond, Color: 3, Points: chosen}}
	c.Description = fmt.Sprintf("How much each place along %s was worth evaluating, by %s, through the point of trial %d.", k.Parameter.axisName(), k.Function, k.Trial)
	return c.SVG(f)
}
