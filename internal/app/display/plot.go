package display

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/guptarohit/asciigraph"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var (
	blue = color.RGBA{R: 0x1f, G: 0x6f, B: 0xb4, A: 0xff}
	grey = color.RGBA{R: 0x90, G: 0x90, B: 0x90, A: 0xff}
)

// WriteSVG plots each evaluation's value, and the best so far, against the
// number of evaluations. The scale is such that a few bad values do not hide the
// rest: values beyond the worse of the best-so-far curve's start and the 90%
// quantile are drawn at the edge.
func (h History) WriteSVG(w io.Writer, name string, objective study.Objective) error {
	p := plot.New()
	p.Title.Text = name
	p.X.Label.Text = "evaluations"
	p.Y.Label.Text = fmt.Sprintf("%s (%s)", objective.Metric, objective.Direction)
	points := make(plotter.XYs, len(h.Values))
	curve := make(plotter.XYs, len(h.Best))
	low, high := h.window(objective.Direction)
	for i := range h.Values {
		x := float64(i + 1)
		points[i] = plotter.XY{X: x, Y: min(max(h.Values[i], low), high)}
		curve[i] = plotter.XY{X: x, Y: min(max(h.Best[i], low), high)}
	}
	scatter, err := plotter.NewScatter(points)
	if err != nil {
		return fmt.Errorf("plot the values: %w", err)
	}
	scatter.GlyphStyle = draw.GlyphStyle{Color: grey, Radius: vg.Points(2), Shape: draw.CircleGlyph{}}
	line, err := plotter.NewLine(curve)
	if err != nil {
		return fmt.Errorf("plot the best value: %w", err)
	}
	line.StepStyle = plotter.PostStep
	line.LineStyle = draw.LineStyle{Color: blue, Width: vg.Points(2)}
	if low > 0 && high/low > 10 {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, logTicks{}
	}
	p.X.Min, p.X.Max = 0, float64(len(h.Values)+1)
	p.Title.Padding = vg.Points(6)
	p.Add(plotter.NewGrid(), scatter, line)
	p.Legend.Add("an evaluation", scatter)
	p.Legend.Add("best so far", line)
	p.Legend.Top = objective.Direction != study.Maximize
	p.Legend.XOffs, p.Legend.Padding = -vg.Points(8), vg.Points(3)
	canvas := vgsvg.New(18*vg.Centimeter, 10*vg.Centimeter)
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(4), -vg.Points(10), vg.Points(4), -vg.Points(4)))
	if _, err := canvas.WriteTo(w); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

// logTicks labels 1, 2 and 5 of each decade, so that even a short range has labels.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
		for m := 1.0; m < 10; m++ {
			t := plot.Tick{Value: m * decade}
			if m == 1 || m == 2 || m == 5 {
				t.Label = fmt.Sprintf("%.6g", t.Value)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// window is the range of values worth showing.
func (h History) window(direction study.Direction) (low, high float64) {
	sorted := append([]float64(nil), h.Values...)
	slices.Sort(sorted)
	last := len(sorted) - 1
	tenth := last / 10
	if direction == study.Maximize {
		return min(sorted[tenth], h.Best[0]), sorted[last]
	}
	return sorted[0], max(sorted[last-tenth], h.Best[0])
}

// largestSketched is the largest value that the terminal's plot can place.
const largestSketched = 1e15

// Sketch draws the best value so far in text, width columns wide; empty for
// fewer than two evaluations, and for values too large to draw. The first tenth is drawn no worse than its end, so
// that a bad start does not flatten the rest, unless there is nothing else to see.
func (h History) Sketch(width int) string {
	if len(h.Best) < 2 || slices.ContainsFunc(h.Best, func(v float64) bool { return math.Abs(v) > largestSketched }) {
		return ""
	}
	curve := slices.Clone(h.Best)
	if start := len(curve) / 10; curve[start] != curve[len(curve)-1] {
		for i := range start {
			curve[i] = curve[start]
		}
	}
	return asciigraph.Plot(curve, asciigraph.Width(max(20, min(width, 100))), asciigraph.Height(8),
		asciigraph.YAxisValueFormatter(func(v float64) string { return fmt.Sprintf("%.4g", v) }), asciigraph.Caption("best value against evaluations"))
}
