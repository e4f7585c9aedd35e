package picture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Parallel shows evaluations as lines across the axes of all parameters and of the
// objective. The axes lie below each other, so that any number of them fits. The colour
// tells the rank of the value, and good evaluations lie on top. Those without a value end
// before the objective's axis.
type Parallel struct {
	Objective  Objective
	Parameters []Parameter
	// Evaluations have a place for each of the parameters, in their order.
	Evaluations []Evaluation
	// Key is that of the objective's axis (see Parameter.Key).
	Key string
}

var _ Picture = (*Parallel)(nil)

const (
	mostLines  = 240
	axisHeight = 60
	// mostAxes limits the parameters.
	mostAxes = 40
)

// SVG implements Picture.
func (p *Parallel) SVG(f Frame) []byte {
	c := newCanvas(f)
	if len(p.Evaluations) == 0 || len(p.Parameters) == 0 {
		return c.empty(p.Objective.Caption(), "No evaluation has ended.")
	}
	lines := p.sorted()
	var values []float64
	for _, l := range lines {
		if l.State == Completed {
			values = append(values, l.Value)
		}
	}
	caption := "each line is an evaluation"
	if n := len(p.Evaluations); n > len(lines) {
		caption = fmt.Sprintf("%d of %d evaluations, the best of all included", len(lines), n)
	}
	top := c.head(caption)
	d := &parallel{canvas: c, top: top + 30, left: side, right: c.width - side}
	p.key(c, top)
	parameters := p.Parameters[:min(len(p.Parameters), mostAxes)]
	for i := range parameters {
		d.axes = append(d.axes, axis{name: parameters[i].axisName(), key: parameters[i].Key, p: &parameters[i], span: parameters[i].span()})
	}
	d.axes = append(d.axes, p.valueAxis(values))
	rank := 0
	for _, l := range lines {
		of := "line thin c1"
		pattern := ` stroke-dasharray="3 3"`
		if l.State == Completed {
			of, pattern = "line thin "+level(float64(rank)/float64(max(1, len(values)-1))), ""
			rank++
		}
		d.line(&l, of, pattern, p.Objective)
	}
	for i := range d.axes { // above the lines, so that numbers can be read
		d.draw(i)
		d.handle(i)
	}
	description := fmt.Sprintf("%d evaluations across %d parameters and %s.", len(p.Evaluations), len(p.Parameters), p.Objective.Caption())
	return c.finish(description, d.y(len(d.axes)-1)+34)
}

// sorted returns the lines to draw, the best last; those without a value come first.
func (p *Parallel) sorted() []Evaluation {
	var ended, without []Evaluation
	for _, l := range p.Evaluations {
		switch {
		case len(l.At) < len(p.Parameters):
		case l.State == Completed && !math.IsNaN(l.Value):
			ended = append(ended, l)
		case l.State != Completed && l.State != Running && l.State != Cancelled:
			without = append(without, l)
		}
	}
	slices.SortFunc(ended, func(a, b Evaluation) int {
		order := cmp.Compare(b.Value, a.Value)
		if p.Objective.Maximize {
			order = -order
		}
		return cmp.Or(order, a.Trial-b.Trial)
	})
	if n := len(ended); n > mostLines {
		good := ended[n-mostLines/2:]
		ended = append(pick(ended[:n-mostLines/2], spread(n-mostLines/2, mostLines/2)), good...)
	}
	return append(pick(without, spread(len(without), mostLines/4)), ended...)
}

// key explains the colours.
func (p *Parallel) key(c *canvas, y float64) {
	c.label("number", side, y+14, "start", "worst", 10)
	at := side + 40.0
	for i := range levels {
		c.f(`<rect class="area q%d key" x="%.1f" y="%.1f" width="10.5" height="10"/>`+"\n", i, at+float64(i)*10, y+5)
	}
	c.label("number", at+106, y+14, "start", "best", 10)
	c.f(`<path class="line thin c1 key" stroke-dasharray="3 3" d="M%.1f %.1fh22"/>`+"\n", at+146, y+10)
	c.label("number", at+174, y+14, "start", "no value", 10)
}

// axis is an axis of parallel coordinates; p is nil for the objective.
type axis struct {
	name, key string
	p         *Parameter
	span      span
}

func (p *Parallel) valueAxis(values []float64) axis {
	a := axis{name: p.Objective.Caption(), key: p.Key}
	low, high := 0.0, 1.0
	if len(values) > 0 {
		low, high, _ = p.Objective.window(values, nil)
	}
	a.span = newSpan(low, high, logarithmic(low, high))
	return a
}

type parallel struct {
	*canvas
	axes             []axis
	top, left, right float64
}

func (d *parallel) y(i int) float64 { return d.top + float64(i)*axisHeight + 14 }

func (d *parallel) x(i int, v float64) float64 {
	at := max(0, min(1, d.axes[i].span.at(v)))
	return d.left + inset + at*(d.right-d.left-2*inset)
}

// draw draws an axis, its name and its numbers.
func (d *parallel) draw(i int) {
	a, y := &d.axes[i], d.y(i)
	d.f(`<path class="axis" d="M%.1f %.1fH%.1f"/>`+"\n", d.left, y, d.right)
	d.label("soft halo", d.left, y-6, "start", a.name, int((d.right-d.left)/charWidth))
	most := max(2, int((d.right-d.left)/90))
	var ticks []tick
	if a.p == nil {
		ticks = a.span.inside(most, false)
	} else {
		ticks = a.p.ticks(a.span, most)
	}
	d.numbers("number x halo", y+16, 0, d.width-2, ticks, a.p.labelColumns(d.right-d.left, len(ticks)),
		func(v float64) float64 { return d.x(i, v) }, func(x float64, shown bool) {
			if shown {
				d.f(`<path class="axis" d="M%.1f %.1fv4"/>`+"\n", x, y)
			}
		})
}

// handle adds what a script needs to let people select a part of an axis: an area around
// it that says which values lie where.
func (d *parallel) handle(i int) {
	a := &d.axes[i]
	if a.key == "" {
		return
	}
	scale, levels := Linear, ""
	switch {
	case a.span.log:
		scale = Log
	case a.span.logit:
		scale = Logit
	}
	if a.p != nil && len(a.p.Levels) > 0 {
		if list, err := json.Marshal(a.p.Levels); err == nil { // a list of texts has no errors
			levels = ` data-levels="` + escape(string(list)) + `"`
		}
	}
	d.f(`<rect class="axis-hit" fill="none" pointer-events="all" x="%.1f" y="%.1f" width="%.1f" height="24" data-key="%s" data-scale="%s" data-low="%s" data-high="%s" data-left="%.1f" data-right="%.1f"%s/>`+"\n",
		d.left, d.y(i)-12, d.right-d.left, escape(a.key), escape(string(scale)), exact(a.span.low), exact(a.span.high), d.left+inset,
		d.right-inset, levels)
}

// line draws an evaluation, broken where a parameter is not active.
func (d *parallel) line(l *Evaluation, of, pattern string, o Objective) {
	var path strings.Builder
	command := byte('M')
	at := slices.Clone(l.At[:len(d.axes)-1])
	if l.State == Completed {
		at = append(at, l.Value)
	}
	for i, v := range at {
		if math.IsNaN(v) {
			command = 'M'
			continue
		}
		fmt.Fprintf(&path, "%c%.1f %.1f", command, d.x(i, v), d.y(i))
		command = 'L'
		if i > 0 && i+1 < len(at) && math.IsNaN(at[i-1]) && math.IsNaN(at[i+1]) {
			path.WriteString("h0.1") // a place on its own
		}
	}
	if path.Len() == 0 {
		return
	}
	note := fmt.Sprintf("trial %d, %s", l.Trial, l.State)
	value := math.NaN()
	if l.State == Completed {
		value = l.Value
		note = fmt.Sprintf("trial %d: %s %s", l.Trial, o.Name, six(l.Value))
	}
	d.f(`<path class="%s"%s%s d="%s">%s</path>`+"\n", of, pattern, data(l.Trial, math.NaN(), value), path.String(), tip(note))
}
