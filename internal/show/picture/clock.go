package picture

import (
	"fmt"
	"slices"
)

// unit returns the unit in which times up to seconds are easy to read, and its length in
// seconds.
func unit(seconds float64) (name string, length float64) {
	switch {
	case seconds < 180:
		return "seconds", 1
	case seconds < 3*3600:
		return "minutes", 60
	case seconds < 3*86400:
		return "hours", 3600
	}
	return "days", 86400
}

// Step is a number that holds from a time on, in seconds.
type Step struct {
	At float64
	N  int
}

// Pending shows how many evaluations were under way over time.
type Pending struct {
	// Steps MUST be in the order of their times, which are in seconds from the study's
	// start.
	Steps []Step
	// Limit is how many may be under way at once; 0 for no limit.
	Limit int
}

var _ Picture = (*Pending)(nil)

// SVG implements Picture.
func (p *Pending) SVG(f Frame) []byte {
	c := Chart{Y: "evaluations under way", Count: true, FromZero: true, Height: 180}
	if len(p.Steps) == 0 {
		return newCanvas(f).empty(c.Y, "Nothing has been evaluated.")
	}
	end := p.Steps[len(p.Steps)-1].At
	name, length := unit(end)
	c.X = name + " since the start"
	points := make([]Point, len(p.Steps))
	most := 0
	for i, s := range p.Steps {
		points[i] = Point{X: s.At / length, Y: float64(s.N)}
		most = max(most, s.N)
	}
	c.Series = []Series{{Name: "under way", Kind: Steps, Thin: true, Points: pick(points, thinned(points, mostDots))}}
	if p.Limit > 0 {
		c.Series = append(c.Series, Series{Name: fmt.Sprintf("at most %d", p.Limit), Kind: Lines, Thin: true, Color: 5, Dash: 1,
			Points: []Point{{X: 0, Y: float64(p.Limit)}, {X: end / length, Y: float64(p.Limit)}}})
	}
	c.Low, c.High = 0, float64(max(most, p.Limit, 1))
	c.Description = fmt.Sprintf("How many evaluations were under way over time, at most %d.", most)
	return c.SVG(f)
}

// Staleness shows for each trial how many results its suggestion did not know.
type Staleness struct {
	// Points have the trial's number as X and the number of results as Y, in order.
	Points []Point
}

var _ Picture = (*Staleness)(nil)

// SVG implements Picture.
func (p *Staleness) SVG(f Frame) []byte {
	c := Chart{X: "trial", Y: "results that arrived while the trial was suggested", Count: true, FromZero: true, Height: 180, Unlisted: true}
	points := usable(p.Points)
	if len(points) == 0 {
		return newCanvas(f).empty(c.Y, "Nothing has been suggested.")
	}
	c.Low, c.High = 0, max(1, slices.Max(ys(points)))
	shown := pick(points, thinned(points, mostSamples))
	for i := range shown {
		if shown[i].Note == "" {
			shown[i].Note = fmt.Sprintf("trial %d: %g", shown[i].Trial, shown[i].Y)
		}
	}
	c.Series = []Series{{Name: "trial", Kind: Dots, Sign: ColorDot, Points: shown}}
	c.Description = fmt.Sprintf("For each of %d trials, how many results its suggestion did not know.", len(points))
	return c.SVG(f)
}
