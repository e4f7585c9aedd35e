package plot

import (
	"fmt"
	"html"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// palette holds the colours of Okabe and Ito, which people with any kind of colour
// blindness can distinguish (https://jfly.uni-koeln.de/color/): one for white and,
// lighter where needed, one for black. Yellow is left out, since it is hard to see on
// white.
var palette = []struct{ light, dark string }{
	{"#0072b2", "#56b4e9"}, // blue
	{"#d55e00", "#ff8c42"}, // vermilion
	{"#009e73", "#2fd6a5"}, // green
	{"#a8488a", "#e59bcb"}, // purple
	{"#b07800", "#f0c04a"}, // orange
	{"#444444", "#d0d0d0"}, // grey
}

// colour returns the class of the colour with that number.
func colour(n int) string { return fmt.Sprintf("c%d", n%len(palette)) }

// dash returns the attribute of a line pattern.
func dash(n int) string {
	return [...]string{"", ` stroke-dasharray="7 4"`, ` stroke-dasharray="2 3"`, ` stroke-dasharray="9 3 2 3"`}[n%4]
}

// fonts are system fonts of every platform: the picture embeds none.
const fonts = `system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans","Liberation Sans","DejaVu Sans",Arial,sans-serif`

// stylesheet returns the style of a chart: light, and dark for those who prefer that.
func stylesheet() string {
	var b strings.Builder
	b.WriteString("<style>\ntext{font:12px " + fonts + "}.title{font-size:17px;font-weight:600}\n" +
		".grid{stroke-width:1}.axis{stroke-width:1;fill:none}.line{fill:none;stroke-width:2.25;stroke-linejoin:round;stroke-linecap:round}\n" +
		".band{stroke:none;fill-opacity:.14}.sign{fill:none;stroke-width:1.8;stroke-linecap:round}\n")
	b.WriteString(scheme("#ffffff", "#1f2328", "#59636e", "#e4e7eb", "#8c959f", func(i int) string { return palette[i].light }))
	b.WriteString("@media (prefers-color-scheme:dark){\n")
	b.WriteString(scheme("#0d1117", "#e6edf3", "#9198a1", "#262c36", "#8b949e", func(i int) string { return palette[i].dark }))
	b.WriteString("}\n</style>\n")
	return b.String()
}

// scheme returns the part of the style that sets colours.
func scheme(paper, ink, soft, grid, dot string, of func(int) string) string {
	s := fmt.Sprintf(".paper{fill:%s}text{fill:%s}.soft,.number{fill:%s}.grid{stroke:%s}.axis{stroke:%s}.dot,.mark{fill:%s}\n", paper, ink, soft, grid, soft, dot)
	for i := range palette {
		s += fmt.Sprintf(".line.c%d,.sign.c%d{stroke:%s}.band.c%d{fill:%s}", i, i, of(i), i, of(i))
	}
	return s + "\n"
}

// escape makes text safe in SVG. Characters that XML cannot hold become U+FFFD.
func escape(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd")))
}

// item is an entry of the legend.
type item struct {
	text string
	// x is its left edge, row its row in the legend.
	x    float64
	row  int
	sign func(d *chart, x, y float64)
}

const (
	// signWidth is the width of the sign before an entry, itemGap the gap after it.
	signWidth, itemGap = 30, 18
	// widestItem is the maximum number of columns of an entry.
	widestItem = 44
)

// legend lists the series, the marks at the edges, and the lanes.
func (d *chart) legend() []*item {
	var items []*item
	add := func(text string, sign func(d *chart, x, y float64)) {
		items = append(items, &item{text: text, sign: sign})
	}
	for i := range d.Series {
		s := &d.Series[i]
		if s.Kind == Dots {
			add(s.Name, func(d *chart, x, y float64) { d.f(`<circle class="dot key" cx="%.1f" cy="%.1f" r="3"/>`+"\n", x+12, y) })
			d.edges(s, add)
			continue
		}
		add(s.Name, func(d *chart, x, y float64) {
			d.f(`<path class="line %s"%s d="M%.1f %.1fh22"/>`+"\n", colour(s.Color), dash(s.Dash), x, y)
		})
	}
	for i, l := range d.Lanes {
		if len(l.Points) > 0 {
			add(fmt.Sprintf("%s (%d)", l.Name, len(l.Points)), func(d *chart, x, y float64) { d.sign(l.Mark, i, x+12, y, "") })
		}
	}
	return items
}

// edges adds the marks at the edges to the legend.
func (d *chart) edges(s *Series, add func(string, func(d *chart, x, y float64))) {
	points := usable(s.Points)
	if len(points) == 0 {
		return
	}
	low, high := d.shown()
	least, greatest := bounds(points, func(p Point) float64 { return p.Y })
	above, below := 0, 0
	for _, p := range points {
		if p.Y > high {
			above++
		} else if p.Y < low {
			below++
		}
	}
	if above > 0 {
		add(fmt.Sprintf("%d above, up to %s", above, short(greatest)), func(d *chart, x, y float64) {
			d.f(`<path class="mark" d="%s"/>`+"\n", arrow(x+12, y-4, 1))
		})
	}
	if below > 0 {
		add(fmt.Sprintf("%d below, down to %s", below, short(least)), func(d *chart, x, y float64) {
			d.f(`<path class="mark" d="%s"/>`+"\n", arrow(x+12, y+4, -1))
		})
	}
}

// place puts entries side by side, in as many rows as needed.
func place(items []*item, left, right float64) (rows int) {
	x := left
	for _, i := range items {
		width := signWidth + float64(min(ansi.StringWidth(i.text), widestItem))*charWidth
		if x > left && x+width > right {
			rows++
			x = left
		}
		i.x, i.row = x, rows
		x += width + itemGap
	}
	if len(items) == 0 {
		return 0
	}
	return rows + 1
}

// draw draws the entry; the legend's rows begin at top.
func (i *item) draw(d *chart, top float64) {
	y := top + float64(i.row)*legendHeight + legendHeight/2
	i.sign(d, i.x, y)
	d.label("legend", i.x+signWidth, y+4, "start", i.text, widestItem)
}
