package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Contour shows what a model expects in the plane of two parameters, and beside it how
// uncertain the model is there.
type Contour struct {
	Objective Objective
	X, Y      Parameter
	// AxisX and AxisY are the places of the parameters among Evaluation.At.
	AxisX, AxisY int
	// Xs and Ys are places on the two axes, in order. Mean[j][i] and SD[j][i] are what
	// the model expects at Xs[i] and Ys[j], and its standard deviation.
	Xs, Ys   []float64
	Mean, SD [][]float64
	// Evaluations in which a parameter was not active are left out.
	Evaluations []Evaluation
	// Best is the best trial; 0 for none.
	Best int
}

var _ Picture = (*Contour)(nil)

const (
	contourHeight = 210
	sideBySide    = 560 // the least width for two plots beside each other
	// mostPlaces is the maximum number of evaluations in each of the two plots.
	mostPlaces = 100
)

// SVG implements Picture.
func (k *Contour) SVG(f Frame) []byte {
	f.Title = cmp.Or(f.Title, k.X.Name+" and "+k.Y.Name)
	c := newCanvas(f)
	if !k.complete() {
		return c.empty(k.Objective.Caption(), "There is no model.")
	}
	top := c.head(k.Y.axisName() + " against " + k.X.axisName())
	description := fmt.Sprintf("What the model expects of %s in the plane of %s and %s, and how uncertain it is.", k.Objective.Caption(),
		k.X.axisName(), k.Y.axisName())
	mean := level
	if !k.Objective.Maximize {
		mean = func(share float64) string { return level(1 - share) }
	}
	right := c.width - side
	if c.width < sideBySide {
		next := k.plot(c, top, side, right, k.Objective.Name+", expected", k.Mean, mean)
		bottom := k.plot(c, next+16, side, right, "uncertainty (standard deviation)", k.SD, level)
		return c.finish(description, bottom)
	}
	middle := c.width / 2
	bottom := k.plot(c, top, side, middle-6, k.Objective.Name+", expected", k.Mean, mean)
	k.plot(c, top, middle+6, right, "uncertainty (standard deviation)", k.SD, level)
	return c.finish(description, bottom)
}

// complete reports whether the grid can be drawn.
func (k *Contour) complete() bool {
	if len(k.Xs) < 2 || len(k.Ys) < 2 || len(k.Mean) != len(k.Ys) || len(k.SD) != len(k.Ys) {
		return false
	}
	for j := range k.Ys {
		if len(k.Mean[j]) != len(k.Xs) || len(k.SD[j]) != len(k.Xs) {
			return false
		}
		for i := range k.Xs {
			if v := k.Mean[j][i] + k.SD[j][i] + k.Xs[i] + k.Ys[j]; math.IsNaN(v) || math.Abs(v) > largest {
				return false
			}
		}
	}
	return true
}

// field is one of the two plots.
type field struct {
	*canvas
	k                        *Contour
	left, right, top, bottom float64
	x, y, v                  span
	// class returns the class of a share of the range of values.
	class func(share float64) string
}

// plot draws one of the two plots and returns its lower end.
func (k *Contour) plot(c *canvas, top, left, right float64, caption string, grid [][]float64, class func(float64) string) float64 {
	d := &field{canvas: c, k: k, x: k.X.span(), y: k.Y.span(), class: class}
	yTicks := k.Y.ticks(d.y, 6)
	widest := 0.0
	for _, t := range yTicks {
		widest = max(widest, textWidth(t.label, 9))
	}
	d.left, d.right = left+widest+8, right
	values := slices.Concat(grid...)
	low, high := slices.Min(values), slices.Max(values)
	d.v = newSpan(low, high, logarithmic(low, high))
	c.label("legend", left, top+14, "start", caption, int((right-left)/charWidth))
	d.scale(top + 24)
	d.top = top + 50
	d.bottom = d.top + contourHeight
	c.clip(d.left, d.top, d.right, d.bottom)
	if len(k.X.Levels) == 0 && len(k.Y.Levels) == 0 {
		d.areas(grid)
	} else {
		d.cells(grid)
	}
	c.endClip()
	for _, t := range yTicks {
		c.label("number y", d.left-6, d.py(t.value)+4, "end", t.label, 9)
	}
	xTicks := k.X.ticks(d.x, max(2, int((right-d.left)/70)))
	c.numbers("number x", d.bottom+18, left, right, xTicks, k.X.labelColumns(right-d.left, len(xTicks)), d.px, nil)
	d.places()
	return d.bottom + 26
}

func (d *field) px(v float64) float64 { return d.left + d.x.at(v)*(d.right-d.left) }
func (d *field) py(v float64) float64 { return d.bottom - d.y.at(v)*(d.bottom-d.top) }

// scale draws what the colours mean, at the height y.
func (d *field) scale(y float64) {
	width := (d.right - d.left) * 0.5
	at := d.left + (d.right-d.left-width)/2
	step := width / float64(len(levels))
	for i := range levels {
		share := (float64(i) + 0.5) / float64(len(levels))
		d.f(`<rect class="area %s key" x="%.1f" y="%.1f" width="%.1f" height="10"/>`+"\n", d.class(share), at+float64(i)*step, y, step+0.5)
	}
	d.label("number", at-6, y+9, "end", short(d.v.low), 12)
	d.label("number", at+width+6, y+9, "start", short(d.v.high), 12)
}

// areas fills the areas between contour lines: for each level, from the lowest up, the
// area where the values are above it. Along the edges of the grid's cells the values are
// taken as straight lines.
func (d *field) areas(grid [][]float64) {
	n := float64(len(levels))
	d.f(`<path class="area %s" d="M%.1f %.1fH%.1fV%.1fH%.1fZ"/>`+"\n", d.class(0.5/n), d.left, d.top, d.right, d.bottom, d.left)
	for l := 1; l < len(levels); l++ {
		threshold := float64(l) / n
		var path strings.Builder
		for j := range len(d.k.Ys) - 1 {
			d.row(&path, grid, j, threshold)
		}
		if path.Len() > 0 {
			d.f(`<path class="area %s" data-level="%s" d="%s"/>`+"\n", d.class(threshold+0.5/n), exact(d.v.value(threshold)), path.String())
		}
	}
}

// corner is a corner of a cell: its position and the share of the range of values.
type corner struct{ x, y, share float64 }

// row adds a row of cells to a path, as far as its values are above a threshold.
// Neighbouring cells that are all above become one rectangle.
func (d *field) row(path *strings.Builder, grid [][]float64, j int, threshold float64) {
	at := func(i, j int) corner {
		return corner{d.px(d.k.Xs[i]), d.py(d.k.Ys[j]), d.v.at(grid[j][i])}
	}
	full := -1 // the first cell of a run
	flush := func(end int) {
		if full >= 0 {
			a, b := at(full, j), at(end, j+1)
			path.WriteString("M" + tenth(a.x) + " " + tenth(a.y) + "H" + tenth(b.x) + "V" + tenth(b.y) + "H" + tenth(a.x) + "Z")
			full = -1
		}
	}
	for i := range len(d.k.Xs) - 1 {
		cell := []corner{at(i, j), at(i+1, j), at(i+1, j+1), at(i, j+1)}
		above := 0
		for _, c := range cell {
			if c.share >= threshold {
				above++
			}
		}
		if above == len(cell) {
			if full < 0 {
				full = i
			}
			continue
		}
		flush(i)
		if above == 0 {
			continue
		}
		command := "M"
		for k, a := range cell {
			b := cell[(k+1)%len(cell)]
			if a.share >= threshold {
				path.WriteString(command + tenth(a.x) + " " + tenth(a.y))
				command = "L"
			}
			if (a.share >= threshold) != (b.share >= threshold) {
				t := (threshold - a.share) / (b.share - a.share)
				path.WriteString(command + tenth(a.x+t*(b.x-a.x)) + " " + tenth(a.y+t*(b.y-a.y)))
				command = "L"
			}
		}
		path.WriteByte('Z')
	}
	flush(len(d.k.Xs) - 1)
}

// tenth formats a position to a tenth of a pixel, as shortly as possible.
func tenth(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// cells fills a rectangle for each place of the grid, where a parameter has levels.
func (d *field) cells(grid [][]float64) {
	edges := func(at []float64, p func(float64) float64, first, last float64) []float64 {
		e := make([]float64, len(at)+1)
		e[0], e[len(at)] = first, last
		for i := 1; i < len(at); i++ {
			e[i] = (p(at[i-1]) + p(at[i])) / 2
		}
		return e
	}
	xs, ys := edges(d.k.Xs, d.px, d.left, d.right), edges(d.k.Ys, d.py, d.bottom, d.top)
	for j := range d.k.Ys {
		for i := 0; i < len(d.k.Xs); {
			of := d.class(d.v.at(grid[j][i]))
			from := i
			for i++; i < len(d.k.Xs) && d.class(d.v.at(grid[j][i])) == of; i++ {
			}
			d.f(`<path class="area %s" d="M%.1f %.1fH%.1fV%.1fH%.1fZ"/>`+"\n", of, xs[from], ys[j], xs[i]+0.3, ys[j+1]-0.3, xs[from])
		}
	}
}

// shown returns the evaluations to draw, with the best one on top.
func (k *Contour) shown() []Evaluation {
	active := slices.DeleteFunc(slices.Clone(k.Evaluations), func(e Evaluation) bool { return math.IsNaN(e.At[k.AxisX] + e.At[k.AxisY]) })
	list := pick(active, spread(len(active), mostPlaces))
	for _, p := range active {
		if p.Trial == k.Best && k.Best != 0 {
			list = append(slices.DeleteFunc(list, func(o Evaluation) bool { return o.Trial == p.Trial }), p)
		}
	}
	return list
}

// places draws the evaluations.
func (d *field) places() {
	d.clip(d.left-7, d.top-7, d.right+7, d.bottom+7)
	for _, p := range d.k.shown() {
		atX, atY := p.At[d.k.AxisX], p.At[d.k.AxisY]
		x, y := d.px(atX), d.py(atY)
		note := fmt.Sprintf("trial %d: %s = %s, %s = %s", p.Trial, d.k.X.Name, d.k.X.text(atX), d.k.Y.Name, d.k.Y.text(atY))
		if p.State != Completed {
			note += ", " + string(p.State)
			d.f(`<path class="sign over" d="M%.1f %.1fl6 6m-6 0l6-6"%s>%s</path>`+"\n", x-3, y-3, data(p.Trial, atX, atY), tip(note))
			continue
		}
		note += fmt.Sprintf(", %s %s", d.k.Objective.Name, six(p.Value))
		r, kind := 3.0, "dot over"
		if p.Trial == d.k.Best {
			r, kind = 5.5, "dot c1 over"
		}
		d.f(`<circle class="%s" cx="%.1f" cy="%.1f" r="%g"%s>%s</circle>`+"\n", kind, x, y, r, data(p.Trial, atX, atY), tip(note))
	}
	d.endClip()
}
