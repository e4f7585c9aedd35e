package picture

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Point is a point of a curve, or a mark. A browser shows Note on hovering. Trial is the
// number of its trial, 0 for none.
type Point struct {
	X, Y  float64
	Trial int
	Note  string
	// place is the number of what the point stands for, in its picture's list.
	place int
}

// Lane is a row of marks below a curve for items with a position on the horizontal axis
// but no value, for example failed evaluations.
type Lane struct {
	// Name labels the lane.
	Name string
	// Mark is drawn at each position; SVG draws '×' as a cross, '▽' as a triangle and
	// all others as a ring.
	Mark   rune
	Points []Point // Y is not used
	// of is the number of points before some were left out; 0 if none were.
	of int
}

// largest limits what is drawn, so that the span of two values is finite.
const largest = 1e300

// usable returns the points that can be drawn: it drops NaN, and clamps infinities and
// other values beyond ±1e300.
func usable(points []Point) []Point {
	kept := make([]Point, 0, len(points))
	for _, p := range points {
		if !math.IsNaN(p.X) && !math.IsNaN(p.Y) {
			p.X, p.Y = clamp(p.X), clamp(p.Y)
			kept = append(kept, p)
		}
	}
	return kept
}

// clamp limits a value to what is drawn.
func clamp(v float64) float64 { return max(-largest, min(largest, v)) }

// placed is usable for the marks of a lane, whose values do not count.
func placed(points []Point) []Point {
	marks := slices.Clone(points)
	for i := range marks {
		marks[i].Y = 0
	}
	return usable(marks)
}

// span is the range of an axis. logit means that the axis is even in log(v/(1-v)).
type span struct {
	low, high  float64
	log, logit bool
}

// newSpan returns a range that holds low and high, as far as they are drawn, and is wide
// enough to be divided.
func newSpan(low, high float64, log bool) span {
	low, high = clamp(low), clamp(high)
	size := max(math.Abs(low), math.Abs(high))
	if high-low <= size*1e-9 || high-low < 1/largest { // nearly equal
		by := size / 20
		if size < 1/largest {
			by = 1
		}
		low, high = low-by, high+by
	}
	return span{low: low, high: high, log: log && low > 0}
}

// at returns the position of v in the range: 0 at its low end, 1 at its high end.
func (s span) at(v float64) float64 {
	if s.log {
		return (math.Log10(max(v, 1/largest)) - math.Log10(s.low)) / (math.Log10(s.high) - math.Log10(s.low))
	}
	if s.logit {
		return (logit(v) - logit(s.low)) / (logit(s.high) - logit(s.low))
	}
	return (v - s.low) / (s.high - s.low)
}

// value is the inverse of at.
func (s span) value(at float64) float64 {
	if s.log {
		return math.Pow(10, math.Log10(s.low)+at*(math.Log10(s.high)-math.Log10(s.low)))
	}
	if s.logit {
		l := logit(s.low) + at*(logit(s.high)-logit(s.low))
		return 1 / (1 + math.Exp(-l))
	}
	return s.low + at*(s.high-s.low)
}

// logit returns log(v/(1-v)), at most about ±690.
func logit(v float64) float64 {
	v = max(1/largest, min(1-0x1p-53, v))
	return math.Log(v) - math.Log1p(-v)
}

// tick is a labelled position on an axis.
type tick struct {
	value float64
	label string
}

// round extends the range to the round numbers around it. It returns these and evenly
// spaced round numbers between them, at most most+1 in all.
func (s span) round(most int) (span, []tick) {
	low, high := s.low, s.high
	if s.log {
		low, high = math.Log10(low), math.Log10(high)
	}
	step := roundStep((high-low)/float64(most), s.log)
	ends := func() (first, last float64) { return math.Floor(low/step + 1e-9), math.Ceil(high/step - 1e-9) }
	first, last := ends()
	for last-first > float64(most) {
		step = roundStep(step*1.01, s.log)
		first, last = ends()
	}
	if last == first {
		last++
	}
	var ticks []tick
	for k := first; k <= last; k++ {
		ticks = append(ticks, s.tick(k, step))
	}
	return span{low: ticks[0].value, high: ticks[len(ticks)-1].value, log: s.log}, ticks
}

// horizontal returns the range of the points on the horizontal axis, and whether all
// their positions are whole numbers.
func horizontal(points []Point) (s span, whole bool) {
	first, last := bounds(points, func(p Point) float64 { return p.X })
	whole = !slices.ContainsFunc(points, func(p Point) bool { return p.X != math.Trunc(p.X) })
	return newSpan(first, last, false), whole
}

// inside returns round numbers in the range, about as many as most; whole leaves out fractions.
func (s span) inside(most int, whole bool) []tick {
	if s.log {
		return s.insideLog(most)
	}
	step := roundStep((s.high-s.low)/float64(most), false)
	if whole {
		step = max(1, step)
	}
	var ticks []tick
	for k := math.Ceil(s.low/step - 1e-9); k <= math.Floor(s.high/step+1e-9); k++ {
		ticks = append(ticks, s.tick(k, step))
	}
	return ticks
}

// insideLog returns whole decades of the range if there are three or more, otherwise 1,
// 2 and 5 of each.
func (s span) insideLog(most int) []tick {
	low, high := math.Log10(s.low), math.Log10(s.high)
	parts, step := []float64{1}, max(1, math.Ceil((high-low)/float64(most)))
	if high-low < 3 {
		parts = []float64{1, 2, 5}
	}
	var ticks []tick
	for e := math.Floor(low/step) * step; e <= high; e += step {
		for _, part := range parts {
			v := part * math.Pow(10, e)
			if v >= s.low*(1-1e-9) && v <= s.high*(1+1e-9) {
				ticks = append(ticks, tick{v, number(v)})
			}
		}
	}
	return ticks
}

// tick returns the k-th multiple of step, or of step decades.
func (s span) tick(k, step float64) tick {
	if s.log {
		v := math.Pow(10, k*step)
		return tick{v, number(v)}
	}
	v := k * step
	// Digits beyond the step's are rounding errors.
	digits := int(math.Ceil(max(0, math.Log10(max(math.Abs(v), step)/step)))) + 2
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', min(digits, 17), 64), 64)
	return tick{v, number(v)}
}

// roundStep returns the smallest of 1, 2 and 5 times a power of ten that is at least
// step. For decades it returns a whole number.
func roundStep(step float64, log bool) float64 {
	if log {
		return max(1, math.Ceil(step-1e-9))
	}
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= step*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// number formats a number for an axis.
func number(v float64) string {
	if v == 0 {
		return "0" // not "-0"
	}
	text := strconv.FormatFloat(v, 'g', 10, 64)
	if math.Abs(v) >= 1e6 {
		text = strconv.FormatFloat(nearest(v, 10), 'e', -1, 64)
	}
	if mantissa, exponent, ok := strings.Cut(text, "e"); ok {
		sign := strings.TrimLeft(exponent[:1], "+")
		text = mantissa + "e" + sign + strings.TrimLeft(exponent[1:], "0")
	}
	return text
}

// short formats a value to four digits.
func short(v float64) string { return number(nearest(v, 4)) }

// nearest rounds a value to that many digits, unless that is beyond all numbers.
func nearest(v float64, digits int) float64 {
	if near, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64); err == nil {
		return near
	}
	return v
}

// numbers writes the labels of ticks below a horizontal axis, at y, and leaves out those for
// which there is no space. mark, if it is not nil, draws what belongs to a tick.
func (c *canvas) numbers(class string, y, left, right float64, ticks []tick, columns int, px func(float64) float64,
	mark func(x float64, shown bool)) {
	free := math.Inf(-1)
	for _, t := range ticks {
		x, half := px(t.value), textWidth(t.label, columns)/2
		at := max(left+half, min(right-half, x))
		shown := at-half >= free
		if mark != nil {
			mark(x, shown)
		}
		if shown {
			c.label(class, at, y, "middle", t.label, columns)
			free = at + half + charWidth
		}
	}
}

// labelColumns returns how many columns each of n labels of the parameter has in a width.
func (p *Parameter) labelColumns(width float64, n int) int {
	if p == nil || len(p.Levels) == 0 {
		return 100
	}
	return max(3, int(width/float64(max(1, n))/charWidth)-1)
}
