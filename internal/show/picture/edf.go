package picture

import (
	"cmp"
	"fmt"
	"slices"
)

// EDF is the empirical distribution function of the values: at each value, the share of the
// evaluations whose value is at most as large.
type EDF struct {
	Objective Objective
	// Evaluations without a final value are left out.
	Evaluations []Evaluation
}

var _ Picture = (*EDF)(nil)

// SVG implements Picture.
func (p *EDF) SVG(f Frame) []byte {
	c := Chart{X: p.Objective.Caption(), Y: "share of evaluations with at most this value"}
	dots, _ := split(p.Evaluations, (*Evaluation).place)
	dots = usable(dots)
	n := len(dots)
	if n == 0 {
		return newCanvas(f).empty(c.Y, "No evaluation has a value.")
	}
	slices.SortStableFunc(dots, func(a, b Point) int { return cmp.Compare(a.Y, b.Y) })
	low, high, log := p.Objective.window(ys(dots), nil)
	c.Across = &Parameter{Name: c.X, Low: low, High: high}
	if log {
		c.Across.Scale = Log
	}
	// A value outside the axis still counts in the shares of those inside.
	var points []Point
	inside := 0
	for i, d := range dots {
		if share := float64(i+1) / float64(n); d.Y >= low && d.Y <= high {
			inside++
			points = append(points, Point{X: d.Y, Y: share, Trial: d.Trial})
		}
	}
	name := "evaluations"
	if inside < n {
		name = fmt.Sprintf("evaluations (%d of %d, the rest are outside)", inside, n)
	}
	points = append(points, Point{X: high, Y: points[len(points)-1].Y}) // the last step is seen, even if it is the only one
	c.Low, c.High = 0, 1
	c.Series = []Series{{Name: name, Kind: Steps, Points: pick(points, thinned(points, mostDots))}}
	c.Description = fmt.Sprintf("The empirical distribution function of %d values of %s.", n, p.Objective.Name)
	return c.SVG(f)
}
