package display

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Curve is a line of a plot with a band around it: at X[i] the line is at Mid[i]
// and the band goes from Low[i] to High[i]. All have the same length.
type Curve struct {
	Name string
	// Color and Dash are numbers of colours and of dash patterns, 0 a solid line.
	Color, Dash       int
	X, Low, Mid, High []float64
}

// Axes name what a plot shows.
type Axes struct {
	Title, X, Y string
	// Log makes the vertical axis logarithmic; all values are positive then.
	Log bool
}

// bandAlpha is how opaque bands are: several that overlap stay apart.
const bandAlpha = 0x28

// legendWidth is what the legend takes, to the right of the plot.
const legendWidth = 5 * vg.Centimeter

// WriteCurves plots curves as SVG. Curves without points are only named.
func WriteCurves(w io.Writer, axes Axes, curves []Curve) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = axes.Title, axes.X, axes.Y
	p.Title.Padding = vg.Points(6)
	p.Add(plotter.NewGrid())
	for _, c := range curves {
		if err := c.add(p); err != nil {
			return fmt.Errorf("plot %s: %w", c.Name, err)
		}
	}
	if axes.Log && p.Y.Min > 0 && p.Y.Max > p.Y.Min {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades(p.Y.Min, p.Y.Max)
	}
	p.X.Min = 0
	canvas := vgsvg.New(18*vg.Centimeter+legendWidth, 11*vg.Centimeter)
	area := draw.Crop(draw.New(canvas), vg.Points(4), -vg.Points(10)-legendWidth, vg.Points(4), -vg.Points(4))
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(3)
	p.Legend.XOffs = p.DataCanvas(area).Size().X + vg.Points(8)
	p.Draw(area)
	if _, err := canvas.WriteTo(w); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

// decades labels whole decades where there are several, else parts of one too.
func decades(low, high float64) plot.Ticker {
	if high/low < 1e3 {
		return logTicks{}
	}
	return plot.TickerFunc(func(low, high float64) []plot.Tick {
		var ticks []plot.Tick
		for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
			ticks = append(ticks, plot.Tick{Value: math.Pow(10, e), Label: fmt.Sprintf("1e%g", e)})
		}
		return ticks
	})
}

// add draws the curve.
func (c *Curve) add(p *plot.Plot) error {
	r, g, b, _ := plotutil.DarkColors[c.Color%len(plotutil.DarkColors)].RGBA()
	solid := color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 0xff}
	faint := solid
	faint.A = bandAlpha
	style := draw.LineStyle{Color: solid, Width: vg.Points(1.5), Dashes: plotutil.Dashes(c.Dash)}
	if len(c.X) > 0 {
		middle, band := make(plotter.XYs, len(c.X)), make(plotter.XYs, 2*len(c.X))
		for k, x := range c.X {
			middle[k] = plotter.XY{X: x, Y: c.Mid[k]}
			band[k] = plotter.XY{X: x, Y: c.Low[k]}
			band[len(band)-1-k] = plotter.XY{X: x, Y: c.High[k]}
		}
		area, err := plotter.NewPolygon(band)
		if err != nil {
			return err
		}
		area.Color, area.LineStyle.Width = faint, 0
		line, err := plotter.NewLine(middle)
		if err != nil {
			return err
		}
		line.LineStyle = style
		p.Add(area, line)
	}
	p.Legend.Add(c.Name, &plotter.Line{LineStyle: style})
	return nil
}
