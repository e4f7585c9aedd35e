package picture

import (
	"fmt"
	"slices"
)

// Progress is the best value of a study so far, as steps.
type Progress struct {
	Name string
	// Points have evaluations or seconds as X, in order.
	Points []Point
}

// Compare shows the best values so far of several studies.
type Compare struct {
	Objective Objective
	// Total means that each value is what all evaluations reached together, and not the best of
	// them.
	Total bool
	// Clock means that X is in seconds since each study's start, not in evaluations.
	Clock   bool
	Studies []Progress
}

var _ Picture = (*Compare)(nil)

// comparison is a Compare in the units of its axes.
type comparison struct {
	x string
	// points are those of each study.
	points    [][]Point
	low, high float64
	log       bool
}

// scaled returns the studies in the units of the axes; false if no evaluation has a value.
func (p *Compare) scaled() (c comparison, ok bool) {
	c.x = "evaluations"
	length, end := 1.0, 0.0
	var first, early, last []float64 // the first values, those after a tenth, the last ones
	for _, s := range p.Studies {
		points := usable(s.Points)
		c.points = append(c.points, points)
		if len(points) == 0 {
			continue
		}
		final := points[len(points)-1]
		end = max(end, final.X)
		first, last = append(first, points[0].Y), append(last, final.Y)
		soon := points[0].Y
		for _, q := range points {
			if q.X <= final.X/10 {
				soon = q.Y
			}
		}
		early = append(early, soon)
	}
	if len(first) == 0 {
		return c, false
	}
	if p.Clock {
		var name string
		name, length = unit(end)
		c.x = name + " since the start of each study"
	}
	for i, points := range c.points {
		for k := range points {
			points[k].X /= length
			points[k].Note = p.Studies[i].Name
		}
	}
	// The beginnings are left out if they would take more than half the picture.
	worst, best := slices.Max[[]float64], slices.Min[[]float64]
	if p.Objective.Maximize {
		worst, best = best, worst
	}
	from, to := without(worst(first), worst(early), best(last))
	c.low, c.high = min(from, to), max(from, to)
	c.log = logarithmic(c.low, c.high)
	return c, true
}

// SVG implements Picture.
func (p *Compare) SVG(f Frame) []byte {
	c := Chart{X: "evaluations", Y: p.caption(), FromZero: true}
	all, ok := p.scaled()
	if !ok {
		return newCanvas(f).empty(c.Y, "No evaluation has a value.")
	}
	c.X, c.Low, c.High, c.Log = all.x, all.low, all.high, all.log
	for i, s := range p.Studies {
		points, name := all.points[i], s.Name
		if n := len(points); n > 0 {
			name += ": " + short(points[n-1].Y)
		}
		c.Series = append(c.Series, Series{Name: name, Kind: Steps, Color: i, Dash: i / len(palette),
			Points: pick(points, thinned(points, mostDots))})
	}
	what := "best value"
	if p.Total {
		what = p.Objective.Name
	}
	c.Description = fmt.Sprintf("The %s so far of %d studies (%s), by %s.", what, len(p.Studies), p.Objective.Caption(), c.X)
	return c.SVG(f)
}

// caption is that of the values.
func (p *Compare) caption() string {
	if p.Total {
		return p.Objective.Caption()
	}
	return "best " + p.Objective.Caption()
}

// letter returns the sign of a study in a terminal: A for the first one.
func letter(study int) rune { return 'A' + rune(study%26) }

// Text draws the curves as text, at most width columns wide: the first study with the
// letter A, the next with B, and * where some meet. An arrow at the edge stands for values
// outside the range shown. It returns "" if there is too little
// space, or no study with two values.
func (p *Compare) Text(width int) string {
	all, ok := p.scaled()
	if !ok {
		return ""
	}
	t := Text{
		Width: min(width, widestSketch), Height: sketchRows, Title: p.caption(), X: all.x,
		Log: all.log, Low: all.low, High: all.high,
	}
	points := slices.Concat(all.points...)
	if len(points) < 2 {
		return ""
	}
	c := newSketch(&t, append(points, Point{Y: points[0].Y}))
	if c == nil {
		return ""
	}
	signs := make([][]rune, len(c.cells))
	for i := range signs {
		signs[i] = slices.Repeat([]rune{' '}, c.columns)
	}
	for i, points := range all.points {
		c.letters(signs, letter(i), points)
	}
	return c.draw(&t, points, func(row int) string { return string(signs[row]) })
}

// letters draws steps with a letter: in each column the value that holds at its end.
func (c *sketch) letters(signs [][]rune, letter rune, points []Point) {
	next := 0
	for column := range c.columns {
		for next < len(points) && c.column(points[next].X) <= column {
			next++
		}
		if next == 0 {
			continue // the study has no value yet
		}
		switch value := points[next-1].Y; {
		case value > c.high:
			signs[0][column] = '▲'
		case value < c.low:
			signs[len(signs)-1][column] = '▼'
		default:
			sign := &signs[len(signs)-1-c.rowOf(value)][column]
			if *sign == ' ' {
				*sign = letter
			} else {
				*sign = '*'
			}
		}
		if next == len(points) {
			return // its last evaluation
		}
	}
}
