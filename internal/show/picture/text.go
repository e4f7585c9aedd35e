package picture

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Text specifies how to draw one curve as text. Only Width and Height are required.
type Text struct {
	// Width is the maximum number of columns of the picture, Height the number of rows
	// of the curve itself.
	Width, Height int
	// Title is the line above the curve, X the name of the horizontal axis.
	Title, X string
	// Line joins points by straight lines. Otherwise each value holds until the next
	// point, which draws steps.
	Line bool
	// Log makes the vertical axis logarithmic if all shown values are positive.
	Log bool
	// Low and High are the range of values to show; points outside are marked at the
	// edge. If both are 0, all points are shown.
	Low, High float64
	// Lanes are drawn below the curve; those without points are left out.
	Lanes []Lane
}

const (
	// narrowest is the minimum number of columns of a curve.
	narrowest = 16
	// widestLabel is the maximum number of columns of the labels at the left.
	widestLabel = 12
)

// Draw draws the curve through points, which MUST be in the order of their X, in lines
// of at most t.Width columns without a final newline. It returns "" if there are fewer
// than two points or too little space.
func (t Text) Draw(points []Point) string {
	points = usable(points)
	if len(points) < 2 {
		return ""
	}
	c := newSketch(&t, points)
	if c == nil {
		return ""
	}
	c.curve(points, t.Line)
	return c.draw(&t, points, func(row int) string { return c.text(c.cells[row], t.Line) })
}

// draw writes the picture; content returns the content of a row, from the top down.
func (c *sketch) draw(t *Text, points []Point, content func(row int) string) string {
	var b strings.Builder
	if t.Title != "" {
		c.row(&b, "", ' ', ansi.Truncate(t.Title, c.columns, "…"))
	}
	for i := range c.cells {
		label := c.labels[len(c.cells)-1-i]
		edge := '┤'
		if label == "" {
			edge = '│'
		}
		c.row(&b, label, edge, content(i))
	}
	for _, lane := range t.Lanes {
		if len(lane.Points) > 0 {
			c.row(&b, ansi.Truncate(lane.Name, widestLabel, "…"), '│', c.lane(lane))
		}
	}
	c.axis(&b)
	if t.X != "" {
		name := ansi.Truncate(t.X, c.columns, "…")
		c.row(&b, "", ' ', strings.Repeat(" ", (c.columns-ansi.StringWidth(name))/2)+name)
	}
	c.beyond(&b, points)
	return strings.TrimSuffix(b.String(), "\n")
}

// sketch is where a curve is drawn: cells by row, the top one first.
type sketch struct {
	x, y span
	// whole means that the horizontal axis counts: it has only whole numbers.
	whole bool
	// low and high are the shown range of values.
	low, high float64
	// labels are those of the rows, from the bottom up; "" for none.
	labels       []string
	labelWidth   int
	columns      int
	cells        [][]cell
	above, below []bool // for each column: the curve is beyond the edge
}

// newSketch lays a picture out; nil if there is too little space.
func newSketch(t *Text, points []Point) *sketch {
	low, high := t.Low, t.High
	if low == 0 && high == 0 {
		low, high = bounds(points, func(p Point) float64 { return p.Y })
	}
	all := points
	for _, lane := range t.Lanes {
		all = append(all[:len(all):len(all)], placed(lane.Points)...)
	}
	x, whole := horizontal(all)
	c := &sketch{low: clamp(low), high: clamp(high), x: x, whole: whole}
	rows := max(t.Height, 3) - 1
	y, ticks := newSpan(low, high, t.Log).round(max(2, rows/2))
	each := max(1, rows/(len(ticks)-1))
	c.y = y
	c.labels = make([]string, each*(len(ticks)-1)+1)
	for i, tick := range ticks {
		c.labels[i*each] = tick.label
		c.labelWidth = max(c.labelWidth, len(tick.label))
	}
	for _, lane := range t.Lanes {
		if len(lane.Points) > 0 {
			c.labelWidth = max(c.labelWidth, min(ansi.StringWidth(lane.Name), widestLabel))
		}
	}
	c.columns = t.Width - c.labelWidth - 2
	if c.columns < narrowest {
		return nil
	}
	c.cells = make([][]cell, len(c.labels))
	for i := range c.cells {
		c.cells[i] = make([]cell, c.columns)
	}
	c.above, c.below = make([]bool, c.columns), make([]bool, c.columns)
	return c
}

// bounds returns the least and the greatest value of one or more points.
func bounds(points []Point, of func(Point) float64) (low, high float64) {
	low, high = of(points[0]), of(points[0])
	for _, p := range points {
		low, high = min(low, of(p)), max(high, of(p))
	}
	return low, high
}

// cell holds the neighbours that a line connects a cell to.
type cell uint8

const (
	left cell = 1 << iota
	right
	up
	down
)

// The characters of cells by neighbours, with corners for steps and for lines.
var (
	angular = []rune(" ───│┘└┴│┐┌┬│┤├┼")
	rounded = []rune(" ───│╯╰┴│╮╭┬│┤├┼")
)

// column returns the column of x, row the row of y; the bottom row is 0.
func (c *sketch) column(x float64) int {
	return max(0, min(c.columns-1, int(math.Round(c.x.at(x)*float64(c.columns-1)))))
}

func (c *sketch) rowOf(y float64) int {
	y = max(c.low, min(c.high, y))
	return max(0, min(len(c.cells)-1, int(math.Round(c.y.at(y)*float64(len(c.cells)-1)))))
}

// curve draws the points from left to right. In each column the line passes through the
// points there, and leaves at the value of the column's end.
func (c *sketch) curve(points []Point, straight bool) {
	next, value := 0, points[0].Y
	start := c.column(points[0].X)
	for column := start; column < c.columns; column++ {
		at := c.rowOf(value)
		if column > start {
			c.mark(column, at, left)
		}
		for ; next < len(points) && c.column(points[next].X) <= column; next++ {
			value = points[next].Y
			at = c.vertical(column, at, c.rowOf(value))
		}
		if straight && next > 0 && next < len(points) && c.column(points[next-1].X) < column {
			value = c.between(points[next-1], points[next], column)
			at = c.vertical(column, at, c.rowOf(value))
		}
		c.above[column], c.below[column] = value > c.high, value < c.low
		if next == len(points) && straight {
			return
		}
		c.mark(column, at, right)
	}
}

// between returns the value, in a column, of the straight line through a and b.
func (c *sketch) between(a, b Point, column int) float64 {
	x := c.x.value(float64(column) / float64(c.columns-1))
	share := max(0, min(1, (x-a.X)/(b.X-a.X)))
	if c.y.log && a.Y > 0 && b.Y > 0 {
		return math.Pow(10, math.Log10(a.Y)*(1-share)+math.Log10(b.Y)*share)
	}
	return a.Y*(1-share) + b.Y*share
}

// vertical draws a line in a column from one row to another, and returns the latter.
func (c *sketch) vertical(column, from, to int) int {
	for r := from; r < to; r++ {
		c.mark(column, r, up)
		c.mark(column, r+1, down)
	}
	for r := from; r > to; r-- {
		c.mark(column, r, down)
		c.mark(column, r-1, up)
	}
	return to
}

func (c *sketch) mark(column, row int, to cell) {
	c.cells[len(c.cells)-1-row][column] |= to
}

// text returns a row of the curve, with arrows where the curve is beyond the edge.
func (c *sketch) text(line []cell, straight bool) string {
	look := angular
	if straight {
		look = rounded
	}
	top, bottom := &line[0] == &c.cells[0][0], &line[0] == &c.cells[len(c.cells)-1][0]
	text := make([]rune, len(line))
	for i, to := range line {
		text[i] = look[to]
		switch {
		case c.above[i] && top:
			text[i] = '▲'
		case c.below[i] && bottom:
			text[i] = '▼'
		}
	}
	return string(text)
}

// lane is a row of marks.
func (c *sketch) lane(l Lane) string {
	text := slices.Repeat([]rune{' '}, c.columns)
	for _, p := range placed(l.Points) {
		text[c.column(p.X)] = l.Mark
	}
	return string(text)
}

// axis draws the horizontal axis and its numbers.
func (c *sketch) axis(b *strings.Builder) {
	line, labels := slices.Repeat([]rune{'─'}, c.columns), slices.Repeat([]rune{' '}, c.columns)
	free := 0
	for _, t := range c.x.inside(max(2, c.columns/10), c.whole) {
		at := c.column(t.value)
		from := max(0, min(c.columns-len(t.label), at-(len(t.label)-1)/2))
		if from < free {
			continue
		}
		line[at] = '┬'
		copy(labels[from:], []rune(t.label))
		free = from + len(t.label) + 1
	}
	c.row(b, "", '└', string(line))
	c.row(b, "", ' ', string(labels))
}

// beyond counts the points behind the curve's arrows.
func (c *sketch) beyond(b *strings.Builder, points []Point) {
	above, below := 0, 0
	low, high := bounds(points, func(p Point) float64 { return p.Y })
	for _, p := range points {
		if p.Y > c.high {
			above++
		} else if p.Y < c.low {
			below++
		}
	}
	if above > 0 {
		c.row(b, "", ' ', ansi.Truncate(fmt.Sprintf("▲ %d above the range shown, up to %s", above, short(high)), c.columns, "…"))
	}
	if below > 0 {
		c.row(b, "", ' ', ansi.Truncate(fmt.Sprintf("▼ %d below the range shown, down to %s", below, short(low)), c.columns, "…"))
	}
}

// row writes a line: a label, the edge of the plot, and the plot's content.
func (c *sketch) row(b *strings.Builder, label string, edge rune, text string) {
	pad := strings.Repeat(" ", max(0, c.labelWidth-ansi.StringWidth(label)))
	b.WriteString(strings.TrimRight(pad+label+" "+string(edge)+text, " ") + "\n")
}
