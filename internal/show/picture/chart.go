package picture

import (
	"cmp"
	"math"
	"slices"

	"github.com/charmbracelet/x/ansi"
)

// Chart is a plot of any number of series.
type Chart struct {
	// Y is above the plot and describes the vertical axis. X names the horizontal axis.
	// Long texts are shortened. Description tells people who do not see the picture what it
	// shows; if it is empty, Y does.
	X, Y, Description string
	// Log makes the vertical axis logarithmic if all shown values are positive.
	Log bool
	// Low and High are the range of values to show; Dots outside are marked at the edge
	// and counted in the legend. If both are 0, all points are shown.
	Low, High float64
	// Count means that values are whole numbers from 0 on.
	Count bool
	// FromZero starts the horizontal axis at 0.
	FromZero bool
	// Across is the parameter along the horizontal axis; nil for plain numbers.
	Across *Parameter
	// Height is that of the plot itself, in pixels; 300 if it is 0.
	Height int
	// Unlisted leaves the legend out.
	Unlisted bool
	Series   []Series
	// Lanes are drawn below the plot; those without points are left out.
	Lanes []Lane
}

// Kind selects how the points of a series are drawn.
type Kind int

// The kinds of series: dots, straight lines between points, steps that hold each value
// until the next point, or a vertical bar at each point from Low to High with a dot.
const (
	Dots Kind = iota
	Lines
	Steps
	Whiskers
)

// Sign is the shape of a dot.
type Sign int

// The signs: a dot, a dot in the series' colour, a ring, and a diamond.
const (
	PlainDot Sign = iota
	ColorDot
	Ring
	Diamond
)

// Series is a curve or a cloud of points. Points MUST be in the order of their X.
type Series struct {
	Name string
	Kind Kind
	// Sign is the shape of Dots.
	Sign Sign
	// Color is the number of a colour, Dash that of a line pattern; 0 is solid.
	Color, Dash int
	// Thin draws a line thinly, Faint also in grey and without an entry in the legend.
	Thin, Faint bool
	Points      []Point
	// Low and High are a band around the curve: empty, or one value for each point.
	Low, High []float64
}

var _ Picture = (*Chart)(nil)

// The sizes of a picture, in pixels.
const (
	plotHeight   = 300
	side         = 16 // the margin at the left and at the right
	laneHeight   = 20
	legendHeight = 20
	charWidth    = 6.9 // of a column of text
	titleWidth   = 10.2
)

// chart is a Chart while it is drawn.
type chart struct {
	*Chart
	*canvas
	x, y span
	// whole means that the horizontal axis has only whole numbers.
	whole bool
	// xTicks and yTicks are the numbers on the axes.
	xTicks, yTicks []tick
	// left, right, top and bottom are the plot's edges.
	left, right, top, bottom float64
}

// SVG implements Picture.
func (c *Chart) SVG(f Frame) []byte {
	d := &chart{Chart: c, canvas: newCanvas(f)}
	d.ranges()
	return d.draw()
}

// values returns all finite values of the vertical axis, and the places of all points.
func (d *chart) values() (values []float64, places []Point) {
	for i := range d.Series {
		s := &d.Series[i]
		for _, p := range usable(s.Points) {
			values, places = append(values, p.Y), append(places, p)
		}
		for _, band := range [][]float64{s.Low, s.High} {
			for _, v := range band {
				if !math.IsNaN(v) {
					values = append(values, clamp(v))
				}
			}
		}
	}
	for _, lane := range d.Lanes {
		places = append(places, placed(lane.Points)...)
	}
	return values, places
}

// ranges chooses the axes' ranges and numbers.
func (d *chart) ranges() {
	values, places := d.values()
	low, high := d.Low, d.High
	if low == 0 && high == 0 && len(values) > 0 {
		low, high = slices.Min(values), slices.Max(values)
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
	if d.Count {
		d.y = newSpan(0, max(1, high), false)
		d.y.low = 0
		d.yTicks = d.y.inside(5, true)
	}
	if d.Across != nil {
		d.x = d.Across.span()
		return
	}
	if d.FromZero || len(places) == 0 {
		places = append(places, Point{})
	}
	d.x, d.whole = horizontal(places)
}

// draw lays the picture out from top to bottom.
func (d *chart) draw() []byte {
	widest, lanes := 0, 0
	for _, t := range d.yTicks {
		widest = max(widest, len(t.label))
	}
	for _, lane := range d.Lanes {
		if len(lane.Points) > 0 {
			lanes++
			widest = max(widest, min(ansi.StringWidth(lane.Name), widestLabel))
		}
	}
	d.left, d.right = side+float64(widest)*charWidth+8, d.width-side
	legendTop := d.head(d.Y)
	items := d.legend()
	rows := placeItems(items, side, d.right)
	d.top = legendTop + float64(rows*legendHeight) + 10
	d.bottom = d.top + float64(cmp.Or(d.Height, plotHeight))
	axis := d.bottom + float64(lanes*laneHeight)
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
		item.draw(d.canvas, legendTop)
	}
	return d.finish(cmp.Or(d.Description, d.Y), axis+50)
}

// axes draws the grid and the numbers at the axes.
func (d *chart) axes(bottom float64) {
	for _, t := range d.yTicks {
		y := d.py(t.value)
		d.f(`<path class="grid" d="M%.1f %.1fH%.1f"/>`+"\n", d.left, y, d.right)
		d.label("number y", d.left-8, y+4, "end", t.label, 100)
	}
	most := max(3, int((d.right-d.left)/80))
	if d.Across != nil {
		d.xTicks = d.Across.ticks(d.x, most)
	} else {
		d.xTicks = d.x.inside(most, d.whole)
	}
	columns := d.Across.labelColumns(d.right-d.left, len(d.xTicks))
	d.numbers("number x", bottom+18, 0, d.width-2, d.xTicks, columns, d.px, func(x float64, _ bool) {
		d.f(`<path class="grid" d="M%.1f %.1fV%.1f"/>`+"\n", x, d.top, bottom)
	})
	d.f(`<path class="axis" d="M%.1f %.1fH%.1f"/>`+"\n", d.left, bottom, d.right)
	d.label("soft", (d.left+d.right)/2, bottom+38, "middle", d.X, int((d.right-d.left)/charWidth))
}

// inset keeps points off the plot's edges.
const inset = 6

// px and py return the positions of values in the picture. Far outside the edges, they
// stay within what renderers can draw.
func (d *chart) px(x float64) float64 {
	at := max(-5, min(6, d.x.at(x)))
	return d.left + inset + at*(d.right-d.left-2*inset)
}

func (d *chart) py(y float64) float64 {
	at := max(-5, min(6, d.y.at(y)))
	return d.bottom - inset - at*(d.bottom-d.top-2*inset)
}
