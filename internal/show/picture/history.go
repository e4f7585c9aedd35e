package picture

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// History shows the value of each evaluation and the best so far. Evaluations without a
// final value have lanes of their own. A few bad values do not hide the rest: they are
// marked at the edge.
type History struct {
	Objective Objective
	// X names the horizontal axis; "evaluations" if it is empty.
	X string
	// Evaluations MUST be in the order of their X.
	Evaluations []Evaluation
	// Recommended is the recommended trial; 0 for none.
	Recommended int
	// Goal is the value at which the study ends; nil for none.
	Goal *float64
}

var _ Picture = (*History)(nil)

const (
	// mostDots is the maximum number of dots in a picture.
	mostDots = 1600
	// mostMarks is the maximum number of marks in a lane.
	mostMarks = 300
)

// SVG implements Picture.
func (h *History) SVG(f Frame) []byte {
	h = h.finite()
	dots, best := h.curves()
	c := Chart{X: cmp.Or(h.X, "evaluations"), Y: h.Objective.Caption(), FromZero: true, Lanes: h.Lanes()}
	if len(h.Evaluations) == 0 {
		return newCanvas(f).empty(c.Y, "No evaluation has ended.")
	}
	var keep []float64
	if n := len(best); n > 0 {
		keep = append(keep, best[n/10].Y)
	}
	c.Low, c.High, c.Log = h.Objective.window(ys(dots), keep)
	name := "evaluation"
	shown := pick(dots, thinned(dots, mostDots))
	h.notes(shown)
	if len(shown) < len(dots) {
		name = fmt.Sprintf("evaluation (%d of %d, extremes included)", len(shown), len(dots))
	}
	c.Series = []Series{
		{Name: name, Kind: Dots, Points: shown},
		{Name: "best so far", Kind: Steps, Points: h.extended(best)},
	}
	c.Series = append(c.Series, h.marks(dots, best)...)
	c.Description = h.description(dots, best)
	for i := range c.Lanes {
		c.Lanes[i] = c.Lanes[i].thinned(mostMarks)
		h.notes(c.Lanes[i].Points)
	}
	return c.SVG(f)
}

// thinned returns the lane with at most most marks. Its name keeps the true number.
func (l Lane) thinned(most int) Lane {
	if n := len(l.Points); n > most {
		l.Points = pick(l.Points, spread(n, most))
		l.of = n
	}
	return l
}

// finite returns the history without values that are not numbers.
func (h *History) finite() *History {
	other := *h
	other.Evaluations = nil
	for _, e := range h.Evaluations {
		if !math.IsNaN(e.X) && (e.State != Completed || !math.IsNaN(e.Value)) {
			other.Evaluations = append(other.Evaluations, e)
		}
	}
	return &other
}

// place is where an evaluation is along the axis.
func (e *Evaluation) place() float64 { return e.X }

// curves returns the evaluations with a value, and those that improved on all before.
func (h *History) curves() (dots, best []Point) {
	dots, _ = split(h.Evaluations, (*Evaluation).place)
	for _, p := range dots {
		if n := len(best); n == 0 || h.Objective.better(p.Y, best[n-1].Y) {
			best = append(best, p)
		}
	}
	return dots, best
}

// notes sets the tooltips of points, which know their places. Only points that are drawn
// have some, because making them takes longer than choosing the points.
func (h *History) notes(points []Point) {
	for i := range points {
		e := &h.Evaluations[points[i].place]
		switch note := fmt.Sprintf("evaluation %d, trial %d: ", points[i].place+1, e.Trial); {
		case e.State == Completed:
			points[i].Note = note + h.Objective.Name + " " + six(e.Value)
		case e.Reason != "":
			points[i].Note = fmt.Sprintf("%s%s (%s)", note, e.State, e.Reason)
		default:
			points[i].Note = note + string(e.State)
		}
	}
}

// Best returns the best value so far as steps, up to the last evaluation.
func (h *History) Best() []Point {
	h = h.finite()
	_, best := h.curves()
	return h.extended(best)
}

// extended returns the steps to the last evaluation.
func (h *History) extended(best []Point) []Point {
	if n := len(best); n > 0 {
		if last := h.Evaluations[len(h.Evaluations)-1].X; last > best[n-1].X {
			best = append(best[:n:n], Point{X: last, Y: best[n-1].Y})
		}
	}
	return best
}

// marks are the best, the recommended trial and the goal.
func (h *History) marks(dots, best []Point) (marks []Series) {
	if n := len(best); n > 0 {
		h.notes(best[n-1:])
		marks = append(marks, Series{Name: fmt.Sprintf("best: trial %d, %s", best[n-1].Trial, short(best[n-1].Y)), Kind: Dots, Sign: Ring,
			Color: 1, Points: best[n-1:]})
	}
	for _, p := range dots {
		if h.Recommended > 0 && p.Trial == h.Recommended {
			point := []Point{p}
			h.notes(point)
			point[0].Note = "recommended: " + point[0].Note
			marks = append(marks, Series{Name: fmt.Sprintf("recommended: trial %d", p.Trial), Kind: Dots, Sign: Diamond, Color: 2, Points: point})
		}
	}
	if h.Goal != nil && !math.IsNaN(*h.Goal) {
		last := h.Evaluations[len(h.Evaluations)-1].X
		marks = append(marks, Series{Name: "goal " + short(*h.Goal), Kind: Lines, Thin: true, Color: 3, Dash: 1,
			Points: []Point{{X: 0, Y: *h.Goal}, {X: last, Y: *h.Goal}}})
	}
	return marks
}

// description tells what the picture shows.
func (h *History) description(dots, best []Point) string {
	parts := []string{fmt.Sprintf("%d evaluations, %d of them with a value (%s)", len(h.Evaluations), len(dots), h.Objective.Caption())}
	if n := len(best); n > 0 {
		parts = append(parts, fmt.Sprintf("the best is %s in trial %d", six(best[n-1].Y), best[n-1].Trial))
	}
	for _, l := range h.Lanes() {
		if n := len(l.Points); n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+l.Name)
		}
	}
	return strings.Join(parts, "; ") + "."
}

// Lanes returns the evaluations without a final value, by how they ended.
func (h *History) Lanes() []Lane {
	_, lanes := split(h.Evaluations, (*Evaluation).place)
	return lanes
}

// six formats a value to six digits.
func six(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return "none"
	}
	return number(rounded)
}

const (
	// sketchRows is how many rows the curve has in a terminal.
	sketchRows = 11
	// widestSketch limits the terminal's plot: wider ones are hard to read.
	widestSketch = 100
)

// Text draws the best value so far as text, at most width columns wide. It returns ""
// for fewer than two evaluations with a value.
func (h *History) Text(width int) string {
	h = h.finite()
	dots, best := h.curves()
	if len(dots) < 2 {
		return ""
	}
	// Only a bad start can be outside, since the curve never gets worse.
	low, high := h.bestRange(dots)
	t := Text{
		Width: min(width, widestSketch), Height: sketchRows, Title: "best " + h.Objective.Caption(), X: cmp.Or(h.X, "evaluations"),
		Log: logarithmic(low, high), Low: low, High: high, Lanes: h.Lanes(),
	}
	return t.Draw(h.extended(best))
}

// bestRange returns the range of the best-so-far curve worth showing. It leaves out the
// first tenth of the evaluations with a value if these would take more than half the picture.
func (h *History) bestRange(dots []Point) (low, high float64) {
	curve := ys(dots)
	for k := 1; k < len(curve); k++ {
		if !h.Objective.better(curve[k], curve[k-1]) {
			curve[k] = curve[k-1]
		}
	}
	n := len(curve)
	worst, best := without(curve[0], curve[(n-1)/10], curve[n-1])
	return min(worst, best), max(worst, best)
}
