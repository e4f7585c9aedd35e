package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Front shows evaluations by two of their objectives: those that no other one dominates, and
// the others. Between the dots of the front, a line surrounds what they dominate together if
// there are only these two objectives.
type Front struct {
	X, Y Objective
	// Dominated and Optimal have the value of the one objective as X and of the other as Y.
	Dominated, Optimal []Point
	// Knee is the trial to mark as the knee of the front; 0 for none.
	Knee int
	// Line draws the line.
	Line bool
}

var _ Picture = (*Front)(nil)

// SVG implements Picture.
func (p *Front) SVG(f Frame) []byte {
	c := Chart{X: p.X.Caption(), Y: p.Y.Caption()}
	dominated, optimal := p.sorted()
	if len(optimal) == 0 {
		return newCanvas(f).empty(c.Y, "No evaluation has a value.")
	}
	across, log := p.across(dominated, optimal)
	c.Across = &across
	c.Low, c.High, c.Log = p.Y.window(append(ys(dominated), ys(optimal)...), ys(optimal))
	others := "other trial"
	shown, beyond := across.within(dominated)
	if beyond > 0 {
		others += fmt.Sprintf(" (%d beyond the side are at it)", beyond)
	}
	c.Series = []Series{{Name: others, Kind: Dots, Points: p.notes(shown, dominated)}}
	if p.Line {
		c.Series = append(c.Series, Series{Name: "front", Kind: Lines, Thin: true, Color: 0, Points: p.edge(optimal)})
	}
	c.Series = append(c.Series, Series{Name: "trial on the front", Kind: Dots, Sign: ColorDot, Color: 0, Points: p.notes(optimal, optimal)})
	if k := slices.IndexFunc(optimal, func(q Point) bool { return q.Trial == p.Knee }); p.Knee > 0 && k >= 0 {
		c.Series = append(c.Series, Series{Name: fmt.Sprintf("knee: trial %d", p.Knee), Kind: Dots, Sign: Diamond, Color: 2,
			Points: p.notes(optimal[k:k+1], optimal[k:k+1])})
	}
	c.Description = fmt.Sprintf("Trials on the front: %d, others: %d, by %s and %s.", len(optimal), len(dominated), p.X.Caption(),
		p.Y.Caption())
	if log {
		c.Description += " The horizontal axis is logarithmic."
	}
	return c.SVG(f)
}

// sorted returns the points that can be drawn, in the order of X; of too many others, some.
func (p *Front) sorted() (dominated, optimal []Point) {
	dominated, optimal = usable(p.Dominated), usable(p.Optimal)
	byX := func(a, b Point) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Trial, b.Trial)) }
	slices.SortFunc(dominated, byX)
	slices.SortFunc(optimal, byX)
	return pick(dominated, thinned(dominated, mostDots)), optimal
}

// across returns the horizontal axis, which shows at least the front.
func (p *Front) across(dominated, optimal []Point) (axis Parameter, log bool) {
	xs := func(points []Point) (list []float64) {
		for _, q := range points {
			list = append(list, q.X)
		}
		return list
	}
	low, high, log := p.X.window(append(xs(dominated), xs(optimal)...), xs(optimal))
	axis = Parameter{Name: p.X.Name, Low: low, High: high}
	if log {
		axis.Scale = Log
	}
	return axis, log
}

// within returns points with those beyond the ends of the axis at its ends, and how many these
// are.
func (p *Parameter) within(points []Point) (shown []Point, beyond int) {
	shown = slices.Clone(points)
	for i := range shown {
		if x := max(p.Low, min(p.High, shown[i].X)); x != shown[i].X {
			shown[i].X = x
			beyond++
		}
	}
	return shown, beyond
}

// notes returns points with tooltips that tell their values, which those at the end of an axis
// do not have as their place.
func (p *Front) notes(points, values []Point) []Point {
	points = slices.Clone(points)
	for i, v := range values {
		points[i].Note = fmt.Sprintf("trial %d: %s %s, %s %s", v.Trial, p.X.Name, six(v.X), p.Y.Name, six(v.Y))
	}
	return points
}

// edge is the line around what the front dominates, with a corner between each two points.
func (p *Front) edge(optimal []Point) (line []Point) {
	for i, q := range optimal {
		if i > 0 {
			corner := Point{X: q.X, Y: optimal[i-1].Y} // both points dominate it
			if p.X.Maximize {
				corner = Point{X: optimal[i-1].X, Y: q.Y}
			}
			line = append(line, corner)
		}
		line = append(line, Point{X: q.X, Y: q.Y})
	}
	return line
}

// The signs of a front in a terminal.
const (
	signOther = '·'
	signFront = '●'
	signKnee  = '◆'
)

// Text draws the front as text, at most width columns wide. It returns "" if there is too
// little space, or less than two trials have values.
func (p *Front) Text(width int) string {
	dominated, optimal := p.sorted()
	if len(optimal) == 0 || len(dominated)+len(optimal) < 2 {
		return ""
	}
	across, _ := p.across(dominated, optimal)
	others, _ := across.within(dominated)
	low, high, log := p.Y.window(append(ys(dominated), ys(optimal)...), ys(optimal))
	t := Text{
		Width: min(width, widestSketch), Height: sketchRows, Title: p.Y.Caption(), Low: low, High: high, Log: log,
		X: fmt.Sprintf("%s (%c front, %c others)", p.X.Caption(), signFront, signOther),
	}
	if p.Knee > 0 {
		t.X = fmt.Sprintf("%s (%c front, %c its knee, %c others)", p.X.Caption(), signFront, signKnee, signOther)
	}
	ends := []Point{{X: across.Low, Y: low}, {X: across.High, Y: low}}
	c := newSketch(&t, append(slices.Concat(others, optimal), ends...))
	if c == nil {
		return ""
	}
	c.x = across.span()
	signs := make([][]rune, len(c.cells))
	for i := range signs {
		signs[i] = slices.Repeat([]rune{' '}, c.columns)
	}
	put := func(points []Point, sign rune) {
		for _, q := range points {
			if !math.IsNaN(q.Y) {
				signs[len(signs)-1-c.rowOf(q.Y)][c.column(q.X)] = sign
			}
		}
	}
	put(others, signOther)
	put(optimal, signFront)
	put(slices.DeleteFunc(slices.Clone(optimal), func(q Point) bool { return p.Knee == 0 || q.Trial != p.Knee }), signKnee)
	return c.draw(&t, slices.Concat(others, optimal), func(row int) string { return string(signs[row]) })
}
