package picture

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/fantasia-hpo/fantasia/study"
)

// Bar is one bar of Bars. Part is the part of Value that is drawn darker; NaN or 0 for
// none. Note is its tooltip.
type Bar struct {
	Name        string
	Value, Part float64
	Note        string
}

// Bars shows numbers by name as horizontal bars, such as importances of parameters or
// numbers of failures.
type Bars struct {
	// Caption says what the bars are. Whole and Part name the two colours in the legend;
	// without them there is none.
	Caption, Whole, Part string
	// Percent shows values as percentages: 0.5 is 50%.
	Percent bool
	// Color is the number of a colour.
	Color int
	Bars  []Bar
	// None is shown if there are no bars.
	None string
}

var _ Picture = (*Bars)(nil)

const (
	mostBars  = 40
	barHeight = 34
)

// SVG implements Picture.
func (b *Bars) SVG(f Frame) []byte {
	c := newCanvas(f)
	var bars []Bar
	greatest := 0.0
	for _, bar := range b.Bars {
		if !study.Finite(bar.Value) || bar.Value < 0 {
			continue
		}
		greatest = max(greatest, bar.Value)
		bars = append(bars, bar)
	}
	if len(bars) == 0 {
		return c.empty(b.Caption, cmp.Or(b.None, "There is nothing to show."))
	}
	caption := b.Caption
	if n := len(bars); n > mostBars {
		bars = bars[:mostBars]
		caption += fmt.Sprintf(" (%d of %d)", mostBars, n)
	}
	y := c.head(caption)
	if b.Part != "" {
		rows := c.list([]*item{swatch(b.Part, "bar "+colour(b.Color)), swatch(b.Whole, "band "+colour(b.Color))}, y)
		y += float64(rows * legendHeight)
	}
	margin := 56.0 // for the number behind the longest bar
	length := c.width - 2*side - margin
	for _, bar := range bars {
		c.label("legend", side, y+14, "start", bar.Name, int((c.width-2*side)/charWidth))
		width := 0.0
		if greatest > 0 {
			width = bar.Value / greatest * length
		}
		outer := "bar"
		if bar.Part > 0 || b.Part != "" {
			outer = "band"
		}
		note := cmp.Or(bar.Note, bar.Name+": "+b.number(bar.Value))
		c.f(`<rect class="%s %s" x="%d" y="%.1f" width="%.2f" height="11" data-name="%s"%s>%s</rect>`+"\n", outer, colour(b.Color), side, y+19,
			max(width, 1), escape(bar.Name), data(0, bar.Value, math.NaN()), tip(note))
		if bar.Part > 0 && bar.Value > 0 {
			c.f(`<rect class="bar %s" x="%d" y="%.1f" width="%.2f" height="11"%s>%s</rect>`+"\n", colour(b.Color), side, y+19,
				min(1, bar.Part/bar.Value)*width, data(0, bar.Part, math.NaN()), tip(note))
		}
		c.label("number", side+width+6, y+29, "start", b.number(bar.Value), 10)
		y += barHeight
	}
	return c.finish(b.Caption, y+10)
}

func (b *Bars) number(v float64) string {
	if b.Percent {
		if v > 0 && v < 0.0095 {
			return "<1%"
		}
		return strconv.FormatFloat(100*v, 'f', 0, 64) + "%"
	}
	return short(v)
}
