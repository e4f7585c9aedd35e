package plot

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/charmbracelet/x/ansi"
)

// Chart is a plot of any number of series. It has a light and a dark form, and browsers
// show the one that their user prefers.
type Chart struct {
	// Title is above the plot, Y below the title: it describes the vertical axis. X
	// names the horizontal axis. Long texts are shortened.
	Title, X, Y string
	// Log makes the vertical axis logarithmic if all shown values are positive.
	Log bool
	// Low and High are the range of values to show; Dots outside are marked at the edge
	// and counted in the legend. If both are 0, all points are shown.
	Low, High float64
	// FromZero starts the horizontal axis at 0.
	FromZero bool
	Series   []Series
	// Lanes are drawn below the plot; those without points are left out.
	Lanes []Lane
}

// Kind selects how the points of a series are drawn.
type Kind int

// The kinds of series: dots, straight lines between points, or steps that hold each
// value until the next point.
const (
	Dots Kind = iota
	Lines
	Steps
)

// Series is a curve or a cloud of points. Points MUST be in the order of their X.
type Series struct {
	Name string
	Kind Kind
	// Color is the number of a colour, Dash that of a line pattern; 0 is solid.
	Color, Dash int
	Points      []Point
	// Low and High are a band around the curve: empty, or one value for each point.
	Low, High []float64
}

// The sizes of a chart, in pixels.
const (
	chartWidth   = 720
	plotHeight   = 300
	side         = 20 // the margin at the left and at the right
	laneHeight   = 20
	legendHeight = 20
	charWidth    = 7.2 // of a column of text
	titleWidth   = 10.8
)

// chart is a Chart while it is drawn.
type chart struct {
	*Chart
	b    bytes.Buffer
	x, y span
	// yTicks are the numbers on the vertical axis.
	yTicks []tick
	whole  bool
	// left, right, top and bottom are the plot's edges.
	left, right, top, bottom float64
}

// Write draws the chart as SVG.
func (c *Chart) Write(w io.Writer) error {
	d := &chart{Chart: c}
	d.ranges()
	d.draw()
	if _, err := d.b.WriteTo(w); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

// ranges chooses the axes' ranges and numbers.
func (d *chart) ranges() {
	var all, places []Point
	for i := range d.Series {
		s := &d.Series[i]
		all = append(all, usable(s.Points)...)
		places = append(places, usable(s.Points)...)
		for _, band := range [][]float64{s.Low, s.High} {
			for _, v := range band {
				all = append(all, usable([]Point{{Y: v}})...)
			}
		}
	}
	for _, lane := range d.Lanes {
		places = append(places, usable(lane.Points)...)
	}
	low, high := d.Low, d.High
	if low == 0 && high == 0 && len(all) > 0 {
		low, high = bounds(all, func(p Point) float64 { return p.Y })
	}
	d.y = newSpan(low, high, d.Log)
	if d.y.log && d.y.high/d.y.low < 1e3 {
		d.yTicks = d.y.inside(8, false)
		if len(d.yTicks) < 2 {
			d.y.log = false
		}
	} else if d.y.log {
		d.y, d.yTicks = d.y.round(8)
	}
	if !d.y.log {
		d.y, d.yTicks = d.y.round(7)
	}
	if d.FromZero || len(places) == 0 {
		places = append(places, Point{})
	}
	d.x, d.whole = horizontal(places)
}

// draw lays the picture out from top to bottom.
func (d *chart) draw() {
	widest := 0
	for _, t := range d.yTicks {
		widest = max(widest, len(t.label))
	}
	for _, lane := range d.Lanes {
		if len(lane.Points) > 0 {
			widest = max(widest, min(ansi.StringWidth(lane.Name), widestLabel))
		}
	}
	d.left, d.right = side+float64(widest)*charWidth+8, chartWidth-side
	items := d.legend()
	rows := place(items, d.left, d.right)
	legendTop := 64.0
	d.top = legendTop + float64(rows*legendHeight) + 10
	d.bottom = d.top + plotHeight
	lanes := 0
	for _, lane := range d.Lanes {
		if len(lane.Points) > 0 {
			lanes++
		}
	}
	axis := d.bottom + float64(lanes*laneHeight)
	height := axis + 50
	d.f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" role="img" aria-label="%s">`+"\n",
		chartWidth, height, chartWidth, height, escape(d.Title+": "+d.Y))
	d.b.WriteString(stylesheet())
	d.f(`<clipPath id="plot"><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"/></clipPath>`+"\n", d.left-2, d.top-2, d.right-d.left+4, d.bottom-d.top+4)
	d.f(`<rect class="paper" width="100%%" height="100%%"/>` + "\n")
	d.label("title", d.left, 28, "start", d.Title, int((d.right-d.left)/titleWidth))
	d.label("soft", d.left, 48, "start", d.Y, int((d.right-d.left)/charWidth))
	d.axes(axis)
	for i := range d.Series {
		d.series(&d.Series[i])
	}
	y := d.bottom + laneHeight/2
	for i := range d.Lanes {
		if len(d.Lanes[i].Points) > 0 {
			d.lane(&d.Lanes[i], i, y)
			y += laneHeight
		}
	}
	for _, item := range items {
		item.draw(d, legendTop)
	}
	d.b.WriteString("</svg>\n")
}

// f writes to the picture.
func (d *chart) f(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// label writes text of at most columns columns; it shortens longer text and puts the
// whole text in the tooltip.
func (d *chart) label(class string, x, y float64, anchor, text string, columns int) {
	tip := ""
	if short := ansi.Truncate(text, columns, "…"); short != text {
		text, tip = short, "<title>"+escape(text)+"</title>"
	}
	d.f(`<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s%s</text>`+"\n", class, x, y, anchor, tip, escape(text))
}

// axes draws the grid and the numbers at the axes.
func (d *chart) axes(bottom float64) {
	for _, t := range d.yTicks {
		y := d.py(t.value)
		d.f(`<path class="grid" d="M%.1f %.1fH%.1f"/>`+"\n", d.left, y, d.right)
		d.label("number y", d.left-8, y+4, "end", t.label, 100)
	}
	for _, t := range d.x.inside(8, d.whole) {
		x := d.px(t.value)
		d.f(`<path class="grid" d="M%.1f %.1fV%.1f"/>`+"\n", x, d.top, bottom)
		d.label("number x", x, bottom+18, "middle", t.label, 100)
	}
	d.f(`<path class="axis" d="M%.1f %.1fH%.1f"/>`+"\n", d.left, bottom, d.right)
	d.label("soft", (d.left+d.right)/2, bottom+38, "middle", d.X, int((d.right-d.left)/charWidth))
}

// inset keeps points off the plot's edges.
const inset = 6

// px and py return the positions of values in the picture. Far outside the edges, they
// stay within what renderers can draw.
func (d *chart) px(x float64) float64 {
	return d.left + inset + d.x.at(x)*(d.right-d.left-2*inset)
}

func (d *chart) py(y float64) float64 {
	at := max(-5, min(6, d.y.at(y)))
	return d.bottom - inset - at*(d.bottom-d.top-2*inset)
}

// series draws a series; dots outside the range are drawn at its edge.
func (d *chart) series(s *Series) {
	points := usable(s.Points)
	if s.Kind == Dots {
		low, high := d.shown()
		for _, p := range points {
			switch x := d.px(p.X); {
			case p.Y > high:
				d.f(`<path class="mark" d="%s"><title>%s</title></path>`+"\n", arrow(x, d.top+1, 1), escape(p.Note))
			case p.Y < low:
				d.f(`<path class="mark" d="%s"><title>%s</title></path>`+"\n", arrow(x, d.bottom-1, -1), escape(p.Note))
			default:
				d.f(`<circle class="dot" cx="%.2f" cy="%.2f" r="3"><title>%s</title></circle>`+"\n", x, d.py(p.Y), escape(p.Note))
			}
		}
		return
	}
	if len(points) == 0 {
		return
	}
	if len(s.Low) == len(points) && len(s.High) == len(points) {
		d.band(s, points)
	}
	d.f(`<path class="line %s"%s clip-path="url(#plot)" d="M%.2f %.2f`, colour(s.Color), dash(s.Dash), d.px(points[0].X), d.py(points[0].Y))
	for _, p := range points[1:] {
		if s.Kind == Steps {
			d.f("H%.2fV%.2f", d.px(p.X), d.py(p.Y))
		} else {
			d.f("L%.2f %.2f", d.px(p.X), d.py(p.Y))
		}
	}
	d.f(`"/>` + "\n")
}

// band draws the area between the series' low and high values.
func (d *chart) band(s *Series, points []Point) {
	d.f(`<path class="band %s" clip-path="url(#plot)" d="`, colour(s.Color))
	for i, p := range points {
		d.f("%c%.2f %.2f", "ML"[min(i, 1)], d.px(p.X), d.py(s.Low[i]))
	}
	for i := len(points) - 1; i >= 0; i-- {
		d.f("L%.2f %.2f", d.px(points[i].X), d.py(s.High[i]))
	}
	d.f(`Z"/>` + "\n")
}

// shown returns the range of values whose dots are drawn at their own position.
func (d *chart) shown() (low, high float64) {
	if d.Low == 0 && d.High == 0 {
		return math.Inf(-1), math.Inf(1)
	}
	return min(d.Low, d.y.low), max(d.High, d.y.high)
}

// lane draws a row of marks.
func (d *chart) lane(l *Lane, number int, y float64) {
	d.label("soft", d.left-8, y+4, "end", l.Name, widestLabel)
	for _, p := range usable(l.Points) {
		d.sign(l.Mark, number, d.px(p.X), y, p.Note)
	}
}

// sign draws a lane's mark.
func (d *chart) sign(mark rune, number int, x, y float64, note string) {
	tip := ""
	if note != "" {
		tip = "<title>" + escape(note) + "</title>"
	}
	if mark == '×' {
		d.f(`<path class="sign %s" d="M%.2f %.2fl7 7m-7 0l7-7">%s</path>`+"\n", colour(number+1), x-3.5, y-3.5, tip)
		return
	}
	d.f(`<circle class="sign %s" cx="%.2f" cy="%.2f" r="3.5">%s</circle>`+"\n", colour(number+1), x, y, tip)
}

// arrow draws a triangle with its point at y; it points up if way is 1.
func arrow(x, y, way float64) string {
	return fmt.Sprintf("M%.2f %.2fl4 %gh-8Z", x, y, way*7)
}
