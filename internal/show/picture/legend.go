package picture

import (
	"fmt"

	"github.com/charmbracelet/x/ansi"
)

// item is an entry of the legend.
type item struct {
	text string
	// x is its left edge, row its row in the legend.
	x    float64
	row  int
	sign func(c *canvas, x, y float64)
}

const (
	// signWidth is the width of the sign before an entry, itemGap the gap after it.
	signWidth, itemGap = 30, 14
	// widestItem is the maximum number of columns of an entry.
	widestItem = 44
)

// legend lists the series, the marks at the edges, and the lanes.
func (d *chart) legend() []*item {
	var items []*item
	if d.Unlisted {
		return nil
	}
	add := func(text string, sign func(c *canvas, x, y float64)) {
		items = append(items, &item{text: text, sign: sign})
	}
	for i := range d.Series {
		s := &d.Series[i]
		switch {
		case s.Faint || s.Name == "":
		case s.Kind == Dots || s.Kind == Whiskers:
			key := *s
			if s.Kind == Whiskers {
				key.Sign = ColorDot
			}
			add(s.Name, func(c *canvas, x, y float64) {
				if key.Sign == PlainDot {
					c.f(`<circle class="dot key" cx="%.1f" cy="%.1f" r="3"/>`+"\n", x+12, y)
					return
				}
				c.dot(&key, x+12, y, "", "")
			})
		default:
			add(s.Name, func(c *canvas, x, y float64) {
				c.f(`<path class="%s key"%s d="M%.1f %.1fh22"/>`+"\n", s.class(), dash(s.Dash), x, y)
			})
		}
	}
	d.edges(add)
	for i, l := range d.Lanes {
		if len(l.Points) > 0 {
			add(fmt.Sprintf("%s (%d)", l.Name, max(l.of, len(l.Points))), func(c *canvas, x, y float64) { c.sign(l.Mark, i, x+12, y, "", "") })
		}
	}
	return items
}

// edges adds the marks at the edges to the legend.
func (d *chart) edges(add func(string, func(c *canvas, x, y float64))) {
	low, high := d.shown()
	above, below := 0, 0
	least, greatest := low, high
	for i := range d.Series {
		if d.Series[i].Kind != Dots {
			continue
		}
		for _, p := range usable(d.Series[i].Points) {
			if p.Y > high {
				above, greatest = above+1, max(greatest, p.Y)
			} else if p.Y < low {
				below, least = below+1, min(least, p.Y)
			}
		}
	}
	if above > 0 {
		add(fmt.Sprintf("%d above, up to %s", above, short(greatest)), func(c *canvas, x, y float64) {
			c.f(`<path class="mark key" d="%s"/>`+"\n", arrow(x+12, y-4, 1))
		})
	}
	if below > 0 {
		add(fmt.Sprintf("%d below, down to %s", below, short(least)), func(c *canvas, x, y float64) {
			c.f(`<path class="mark key" d="%s"/>`+"\n", arrow(x+12, y+4, -1))
		})
	}
}

// placeItems puts entries side by side, in as many rows as needed.
func placeItems(items []*item, left, right float64) (rows int) {
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
func (i *item) draw(c *canvas, top float64) {
	y := top + float64(i.row)*legendHeight + legendHeight/2
	i.sign(c, i.x, y)
	c.label("legend", i.x+signWidth, y+4, "start", i.text, min(widestItem, int((c.width-i.x-signWidth-4)/charWidth)))
}

// swatch is an entry with a bar.
func swatch(text, class string) *item {
	return &item{text: text, sign: func(c *canvas, x, y float64) {
		c.f(`<rect class="%s key" x="%.1f" y="%.1f" width="22" height="10"/>`+"\n", class, x, y-5)
	}}
}

// list draws entries below top, and returns how many rows they take.
func (c *canvas) list(items []*item, top float64) (rows int) {
	rows = placeItems(items, side, c.width-side)
	for _, i := range items {
		i.draw(c, top)
	}
	return rows
}
