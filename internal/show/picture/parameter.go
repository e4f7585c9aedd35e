package picture

import (
	"math"
	"slices"
)

// Scale is the scale of a parameter's axis.
type Scale string

// The scales of parameters.
const (
	Linear Scale = ""
	Log    Scale = "log"
	Logit  Scale = "logit"
)

// Parameter is an axis of the search space.
type Parameter struct {
	Name string
	// Low and High are its range, and Scale the scale on which it is searched. Whole
	// means that its values are whole numbers.
	Low, High float64
	Scale     Scale
	Whole     bool
	// Levels are the values of a parameter that is no number, in order. Its values in
	// pictures are their places, counted from 0.
	Levels []string
	// Key is what a page's script calls the parameter when a part of its axis in Parallel
	// is selected; "" if that is not possible.
	Key string
}

// span returns the range of the parameter's axis.
func (p *Parameter) span() span {
	if n := len(p.Levels); n > 0 {
		return span{low: -0.5, high: float64(n) - 0.5}
	}
	low, high := clamp(p.Low), clamp(p.High)
	if math.IsNaN(low) || math.IsNaN(high) {
		low, high = 0, 1
	}
	s := newSpan(low, high, p.Scale == Log)
	if p.Scale == Logit && low > 0 && high < 1 && low < high {
		s.logit = true
	}
	return s
}

// ticks returns labelled positions on the parameter's axis, about as many as most.
func (p *Parameter) ticks(s span, most int) []tick {
	if n := len(p.Levels); n > 0 {
		ticks := make([]tick, 0, n)
		every := (n + 2*most - 1) / (2 * most)
		for i := 0; i < n; i += max(1, every) {
			ticks = append(ticks, tick{float64(i), p.Levels[i]})
		}
		return ticks
	}
	if s.logit {
		return logitTicks(s, most)
	}
	ticks := s.inside(most, p.Whole)
	if len(ticks) < 2 { // a narrow logarithmic range
		plain := s
		plain.log = false
		ticks = plain.inside(most, p.Whole)
	}
	return ticks
}

// logitTicks returns round shares such as 0.01, 0.1, 0.5, 0.9 and 0.99.
func logitTicks(s span, most int) []tick {
	all := []float64{0.5}
	for e := 1; e <= 12; e++ {
		v := math.Pow(10, -float64(e))
		all = append(all, v)
		if e <= 6 {
			all = append(all, 1-v)
		}
	}
	slices.Sort(all)
	all = slices.DeleteFunc(all, func(v float64) bool { return v < s.low*(1-1e-9) || v > s.high*(1+1e-9) })
	if len(all) < 2 {
		s.logit = false
		return s.inside(most, false)
	}
	every := (len(all) + most - 1) / most
	var ticks []tick
	for i := 0; i < len(all); i += max(1, every) {
		ticks = append(ticks, tick{all[i], number(all[i])})
	}
	return ticks
}

// text formats a value of the parameter.
func (p *Parameter) text(v float64) string {
	if n := len(p.Levels); n > 0 {
		return p.Levels[max(0, min(n-1, int(math.Round(v))))]
	}
	return short(v)
}

// Objective is what a study optimises.
type Objective struct {
	Name     string
	Maximize bool
	// Plain is a quantity that is shown but not optimised: its caption names no direction.
	Plain bool
}

// better reports whether a is better than b.
func (o Objective) better(a, b float64) bool {
	if o.Maximize {
		return a > b
	}
	return a < b
}

// Caption names the objective and, unless it is plain, its direction.
func (o Objective) Caption() string {
	switch {
	case o.Plain:
		return o.Name
	case o.Maximize:
		return o.Name + ", higher is better"
	}
	return o.Name + ", lower is better"
}

// window returns the range of values worth showing, and whether it is easier to read on
// a logarithmic axis. It leaves out the worst tenth if these values would take more than
// half the picture, but never a value of keep.
func (o Objective) window(values, keep []float64) (low, high float64, log bool) {
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) })
	for i, v := range values {
		values[i] = clamp(v)
	}
	if len(values) == 0 {
		return 0, 0, false
	}
	slices.Sort(values)
	last := len(values) - 1
	low, high = values[0], values[last]
	if tenth := last / 10; o.Maximize {
		low, _ = without(low, slices.Min(append(slices.Clip(keep), values[tenth])), high)
	} else {
		high, _ = without(high, slices.Max(append(slices.Clip(keep), values[last-tenth])), low)
	}
	return low, high, logarithmic(low, high)
}

// logarithmic reports whether a range of values is easier to read on a logarithmic
// axis.
func logarithmic(low, high float64) bool { return low > 0 && high/low > 20 }

// without returns the range from bad to best if it is less than half of the range from
// worst to best; otherwise the latter.
func without(worst, bad, best float64) (from, to float64) {
	if bad != best && math.Abs(worst/2-best/2) > 2*math.Abs(bad/2-best/2) {
		return bad, best
	}
	return worst, best
}
