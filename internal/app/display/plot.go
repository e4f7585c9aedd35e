package display

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/plot"
	"github.com/fantasia-hpo/fantasia/study"
)

// WriteSVG plots each evaluation's value, and the best so far, against the number
// of evaluations; evaluations without a final value have lanes of their own. A few bad
// values do not hide the rest: they are marked at the edge.
func (h *History) WriteSVG(w io.Writer, name string, objective study.Objective) error {
	low, high := h.window(objective.Direction)
	dots := make([]plot.Point, len(h.Values))
	for i, v := range h.Values {
		note := fmt.Sprintf("evaluation %d, trial %d: %s %s", h.Places[i], h.Trials[i], objective.Metric, view.Number(v))
		dots[i] = plot.Point{X: float64(h.Places[i]), Y: v, Note: note}
	}
	c := plot.Chart{
		Title: name, X: "evaluations", Y: axis(objective), Log: logarithmic(low, high), Low: low, High: high, FromZero: true,
		Series: []plot.Series{{Name: "evaluation", Kind: plot.Dots, Points: dots}, {Name: "best so far", Kind: plot.Steps, Points: h.curve()}},
		Lanes:  h.lanes(),
	}
	if err := c.Write(w); err != nil {
		return fmt.Errorf("plot the values: %w", err)
	}
	return nil
}

// sketchRows is how many rows the curve has in a terminal.
const sketchRows = 11

// widestSketch limits the terminal's plot: wider ones are hard to read.
const widestSketch = 100

// Sketch draws the best value so far in text, at most width columns wide. It returns ""
// for fewer than two evaluations with a value.
func (h *History) Sketch(width int, objective study.Objective) string {
	if len(h.Best) < 2 {
		return ""
	}
	// Only a bad start can be outside, since the curve never gets worse.
	low, high := h.best()
	t := plot.Text{
		Width: min(width, widestSketch), Height: sketchRows, Title: "best " + axis(objective), X: "evaluations",
		Log: logarithmic(low, high), Low: low, High: high, Lanes: h.lanes(),
	}
	return t.Draw(h.curve())
}

// axis describes what a vertical axis shows.
func axis(objective study.Objective) string {
	if objective.Direction == study.Maximize {
		return objective.Metric + ", higher is better"
	}
	return objective.Metric + ", lower is better"
}

// logarithmic reports whether a range of values is easier to read on a logarithmic
// axis.
func logarithmic(low, high float64) bool { return low > 0 && high/low > 20 }

// curve returns the best value so far, up to the last evaluation.
func (h *History) curve() []plot.Point {
	points := make([]plot.Point, len(h.Best), len(h.Best)+1)
	for i, v := range h.Best {
		points[i] = plot.Point{X: float64(h.Places[i]), Y: v}
	}
	if n := len(points); n > 0 && h.Places[n-1] < h.Evaluations {
		points = append(points, plot.Point{X: float64(h.Evaluations), Y: h.Best[n-1]})
	}
	return points
}

// lanes returns the evaluations without a final value.
func (h *History) lanes() []plot.Lane {
	lane := func(name string, mark rune, all []Ended) plot.Lane {
		l := plot.Lane{Name: name, Mark: mark}
		for _, e := range all {
			note := fmt.Sprintf("evaluation %d, trial %d: %s", e.Place, e.Trial, name)
			if e.Reason != "" {
				note += " (" + e.Reason + ")"
			}
			l.Points = append(l.Points, plot.Point{X: float64(e.Place), Note: note})
		}
		return l
	}
	return []plot.Lane{lane("failed", '×', h.Failed), lane("infeasible", '○', h.Infeasible), lane("pruned", '▽', h.Pruned)}
}

// window returns the range of values worth showing. It excludes the worst tenth if
// these values would take more than half the picture.
func (h *History) window(direction study.Direction) (low, high float64) {
	sorted := slices.Sorted(slices.Values(h.Values))
	last := len(sorted) - 1
	tenth := last / 10
	if direction == study.Maximize {
		worst, best := without(sorted[0], min(sorted[tenth], h.Best[last/10]), sorted[last])
		return worst, best
	}
	worst, best := without(sorted[last], max(sorted[last-tenth], h.Best[last/10]), sorted[0])
	return best, worst
}

// best returns the range of the best-so-far curve worth showing. It excludes the first
// tenth if that would take more than half the picture.
func (h *History) best() (low, high float64) {
	last := len(h.Best) - 1
	worst, best := without(h.Best[0], h.Best[last/10], h.Best[last])
	return min(worst, best), max(worst, best)
}

// without returns the range from bad to best if it is less than half of the range from
// worst to best; otherwise the latter.
func without(worst, bad, best float64) (from, to float64) {
	if bad != best && math.Abs(worst/2-best/2) > 2*math.Abs(bad/2-best/2) {
		return bad, best
	}
	return worst, best
}
