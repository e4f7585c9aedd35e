// Package picture makes every picture of a study: as SVG for files, reports and pages,
// and as text for a terminal. It knows nothing of studies: callers supply numbers and
// words, and every word may come from a stranger, because all of them are escaped.
//
// All pictures choose round numbers for their axes, mark values outside the shown range
// instead of hiding them, use colours that colour-blind people can distinguish, and have
// a light and a dark form. A mark carries what it stands for in the attributes
// data-trial, data-x and data-y, and as a tooltip.
package picture

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Picture is anything that can be drawn. The values of this package's types are not
// changed by drawing and may be drawn concurrently.
type Picture interface {
	// SVG returns the picture as an SVG element. It never fails: what cannot be drawn,
	// such as values that are not numbers, is left out, and a picture without data says
	// so.
	SVG(f Frame) []byte
}

// Frame says where a picture is shown.
type Frame struct {
	// Title is above the picture and in its description. A picture of parameters has their
	// names if it is empty.
	Title string
	// Width is in pixels: 720 if it is 0, and at least 280. Text keeps its size, so a
	// picture for a telephone is drawn for that width.
	Width int
	// Inline leaves out the visible title and the stylesheet, for a page that has a
	// heading of its own and Style in its own stylesheet. Pictures have no ids, so any
	// number of them fits into a page.
	Inline bool
}

const (
	defaultWidth  = 720
	smallestWidth = 280
)

// canvas is a picture while it is drawn.
type canvas struct {
	b      bytes.Buffer
	title  string
	width  float64
	inline bool
}

func newCanvas(f Frame) *canvas {
	return &canvas{title: f.Title, width: float64(max(cmp.Or(f.Width, defaultWidth), smallestWidth)), inline: f.Inline}
}

// f writes to the picture.
func (c *canvas) f(format string, args ...any) { fmt.Fprintf(&c.b, format, args...) }

// finish returns the picture, whose height is now known.
func (c *canvas) finish(description string, height float64) []byte {
	var b bytes.Buffer
	label := strings.Join(slices.DeleteFunc([]string{c.title, description}, func(s string) bool { return s == "" }), ": ")
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" class="picture" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s">`+
			"\n",
		c.width, height, c.width, height, escape(label))
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>%s</desc>\n", escape(c.title), escape(description))
	if !c.inline {
		b.WriteString("<style>\n" + style(false) + "</style>\n")
		b.WriteString(`<rect class="paper" width="100%" height="100%"/>` + "\n")
	}
	b.Write(c.b.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// head writes the title, unless the page has it, and the caption below it. It returns
// the place below both.
func (c *canvas) head(caption string) float64 {
	y := 0.0
	if !c.inline && c.title != "" {
		y = 28
		c.label("title", side, y, "start", c.title, int((c.width-2*side)/titleWidth))
	}
	if caption != "" {
		y += 20
		c.label("soft", side, y, "start", caption, int((c.width-2*side)/charWidth))
	}
	return y + 8
}

// empty is a picture that has no data.
func (c *canvas) empty(caption, why string) []byte {
	y := c.head(caption)
	c.label("soft none", side, y+24, "start", why, int((c.width-2*side)/charWidth))
	return c.finish(why, y+44)
}

// label writes text of at most columns columns; it shortens longer text and puts the
// whole text in the tooltip.
func (c *canvas) label(class string, x, y float64, anchor, text string, columns int) {
	whole := ""
	if short := ansi.Truncate(text, max(1, columns), "…"); short != text {
		text, whole = short, text
	}
	c.f(`<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s%s</text>`+"\n", class, x, y, anchor, tip(whole), escape(text))
}

// textWidth returns the estimated width of a text of at most columns columns.
func textWidth(text string, columns int) float64 {
	return float64(min(ansi.StringWidth(text), columns)) * charWidth
}

// clip opens a part of the picture that hides what lies outside; endClip closes it.
func (c *canvas) clip(left, top, right, bottom float64) {
	c.f(`<svg x="%.1f" y="%.1f" width="%.1f" height="%.1f" viewBox="%.1f %.1f %.1f %.1f" overflow="hidden">`+"\n",
		left, top, right-left, bottom-top, left, top, right-left, bottom-top)
}

func (c *canvas) endClip() { c.b.WriteString("</svg>\n") }

// tip is an element's tooltip; "" for no text.
func tip(text string) string {
	if text == "" {
		return ""
	}
	return "<title>" + escape(text) + "</title>"
}

// exact formats a number so that reading it gives the same number.
func exact(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// data returns the attributes that hold what a mark stands for; it leaves out a trial 0.
func data(trial int, x, y float64) string {
	s := ""
	if trial > 0 {
		s = ` data-trial="` + strconv.Itoa(trial) + `"`
	}
	if !math.IsNaN(x) {
		s += ` data-x="` + exact(x) + `"`
	}
	if !math.IsNaN(y) {
		s += ` data-y="` + exact(y) + `"`
	}
	return s
}
