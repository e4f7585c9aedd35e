package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
)

// State is how an evaluation ended.
type State string

// The states of evaluations. A running one has not ended.
const (
	Completed  State = "completed"
	Failed     State = "failed"
	Infeasible State = "infeasible"
	Pruned     State = "pruned"
	Cancelled  State = "cancelled"
	Lost       State = "lost"
	Running    State = "running"
)

// Evaluation is an evaluation as all pictures take it. Value counts only for a completed one.
type Evaluation struct {
	Trial int
	State State
	Value float64
	// At are its places on the axes of the parameters; NaN where one was not active.
	At []float64
	// X is where it is along the horizontal axis of History: its place among all
	// evaluations, or the time of its end.
	X float64
	// Reason says why it failed or was pruned; "" if unknown.
	Reason string
}

// split returns the completed evaluations as dots and the others as lanes, by how they
// ended, each at its place along the horizontal axis. Those without a place are left out.
func split(list []Evaluation, at func(*Evaluation) float64) (dots []Point, lanes []Lane) {
	lanes = []Lane{{Name: string(Failed), Mark: '×'}, {Name: string(Infeasible), Mark: '○'}, {Name: string(Pruned), Mark: '▽'}}
	for i := range list {
		e := &list[i]
		p := Point{X: at(e), Y: e.Value, Trial: e.Trial, place: i}
		if math.IsNaN(p.X) {
			continue
		}
		if e.State == Completed && !math.IsNaN(e.Value) {
			dots = append(dots, p)
		}
		for k := range lanes {
			if lanes[k].Name == string(e.State) {
				lanes[k].Points = append(lanes[k].Points, p)
			}
		}
	}
	return dots, lanes
}

// along is split along the axis of a parameter, in the order of the places.
func along(list []Evaluation, axis int) (dots []Point, lanes []Lane) {
	dots, lanes = split(list, func(e *Evaluation) float64 { return e.At[axis] })
	sortPoints(dots)
	for i := range lanes {
		sortPoints(lanes[i].Points)
	}
	return dots, lanes
}

func sortPoints(points []Point) {
	slices.SortFunc(points, func(a, b Point) int { return cmp.Or(cmp.Compare(a.X, b.X), a.Trial-b.Trial) })
}

// notes sets the tooltips of points along a parameter. Only points that are drawn have some,
// because making them takes longer than choosing the points.
func (p *Parameter) notes(points []Point, list []Evaluation, o Objective) []Point {
	for i := range points {
		outcome := string(list[points[i].place].State)
		if outcome == string(Completed) {
			outcome = o.Name + " " + six(points[i].Y)
		}
		points[i].Note = fmt.Sprintf("trial %d: %s = %s, %s", points[i].Trial, p.Name, p.text(points[i].X), outcome)
	}
	return points
}

// expected returns what a model expects at places along the parameter's axis, with the range
// in which it expects most values, as a series, and the ends of that range.
func (p *Parameter) expected(name string, at, mean, low, high []float64) (s Series, ends []float64) {
	s = Series{Name: name, Kind: Lines}
	if len(p.Levels) > 0 {
		s.Kind = Whiskers
	}
	for i := range min(len(at), len(mean), len(low), len(high)) {
		if math.IsNaN(at[i] + mean[i] + low[i] + high[i]) {
			continue
		}
		note := fmt.Sprintf("%s = %s: %s expected, between %s and %s", p.Name, p.text(at[i]), six(mean[i]), six(low[i]), six(high[i]))
		s.Points = append(s.Points, Point{X: at[i], Y: mean[i], Note: note, place: i})
		s.Low, s.High, ends = append(s.Low, low[i]), append(s.High, high[i]), append(ends, low[i], high[i])
	}
	return s, ends
}

// ys returns the values of points.
func ys(points []Point) []float64 {
	return each.Of(points, func(p Point) float64 { return p.Y })
}
