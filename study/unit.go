package study

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds that keep arithmetic on the values exact, or at least finite. Up to MaxExact, every
// integer is a float64, and no other integer becomes the same one (RFC 8259, section 6). Up to
// 1e12 steps can be told apart.
const (
	MaxExact = 1<<53 - 1
	MaxFloat = 1e300
	MaxSteps = 1e12
)

// Cardinality returns the number of values that the parameter can take; ok is
// false for a float without a step.
func (p Parameter) Cardinality() (n int, ok bool) {
	switch p.Type {
	case Int:
		step := p.step()
		return int(int64(*p.Max-*p.Min)/int64(step)) + 1, true
	case Float:
		if p.Step == nil {
			return 0, false
		}
		// The tolerance keeps the last value if a decimal step divides the range but
		// its float64 does not: 0.3/0.1 is below 3.
		steps := (*p.Max - *p.Min) / *p.Step
		return int(math.Floor(steps*(1+4e-15)+1e-9)) + 1, true
	case Categorical, Ordinal:
		return len(p.Values), true
	case Fidelity:
		return len(p.Levels()), true
	case Bool:
		return 2, true
	default:
		return 1, true
	}
}

// step returns the distance between neighbouring values, or 0 if there are no steps.
func (p Parameter) step() float64 {
	switch {
	case p.Step != nil:
		return *p.Step
	case p.Type == Int:
		return 1
	default:
		return 0
	}
}

// At returns the k-th value of a parameter with a cardinality n, 0 ≤ k < n: numeric
// values in ascending order, others in the listed order, false before true. It panics
// if k is out of range.
func (p Parameter) At(k int) any {
	n, ok := p.Cardinality()
	if !ok || k < 0 || k >= n {
		panic("study: parameter " + p.Name + " has no value number " + strconv.Itoa(k))
	}
	switch p.Type {
	case Int:
		step := p.step()
		return int64(*p.Min) + int64(k)*int64(step)
	case Float:
		return p.grid(k)
	case Bool:
		return k == 1
	case Fixed:
		return p.Value
	case Fidelity:
		return p.Levels()[k]
	default:
		return p.Values[k]
	}
}

// grid returns min + k*step with no more decimals than min and step have: the third
// step of 0.1 from 0 is 0.3, not 0.30000000000000004.
func (p Parameter) grid(k int) float64 {
	value := *p.Min + float64(k)**p.Step
	if d := max(decimals(*p.Min), decimals(*p.Step)); d <= 15 {
		if rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'f', d, 64), 64); err == nil {
			value = rounded
		}
	}
	return min(max(value, *p.Min), *p.Max)
}

// decimals returns the number of digits after the point in the shortest form of v.
func decimals(v float64) int {
	_, fraction, _ := strings.Cut(strconv.FormatFloat(v, 'f', -1, 64), ".")
	return len(fraction)
}

// Index is the inverse of At: it returns the number k of the value. ok is false if At
// does not return exactly that value. An int64 and a float64 that are equal count as
// the same.
func (p Parameter) Index(value any) (k int, ok bool) {
	n, finite := p.Cardinality()
	if !finite {
		return 0, false
	}
	switch p.Type {
	case Int, Float:
		x, ok := Number(value)
		if !ok || x < *p.Min || x > *p.Max {
			return 0, false
		}
		k = p.nearest(x, n)
	case Bool:
		if value == true {
			k = 1
		}
	case Fixed:
	case Fidelity:
		k = max(slices.IndexFunc(p.Levels(), func(level int64) bool { return Equal(level, value) }), 0)
	default:
		k = max(slices.IndexFunc(p.Values, func(v any) bool { return Equal(v, value) }), 0)
	}
	return k, Equal(p.At(k), value)
}

// nearest returns the number of the value of a stepped parameter that is nearest to x.
func (p Parameter) nearest(x float64, n int) int {
	step := p.step()
	k := math.Round((x - *p.Min) / step)
	if !(k > 0) {
		return 0
	}
	return int(min(k, float64(n-1)))
}

// ToUnit maps a value to [0,1] by the parameter's scale. The n values of a parameter
// with a cardinality map to the middles of n bins that cover [0,1]; the bins of a
// numeric parameter follow its scale, others have equal width. Min and max of a float
// without a step map to 0 and 1. Values outside the range map to its nearest end, and
// values of a wrong type to 0.
func (p Parameter) ToUnit(value any) float64 {
	if p.Type != Int && p.Type != Float {
		k, ok := p.Index(value)
		if !ok {
			return 0
		}
		n, _ := p.Cardinality()
		return (float64(k) + 0.5) / float64(n)
	}
	x, ok := Number(value)
	if !ok {
		return 0
	}
	if u := p.place(min(max(x, *p.Min), *p.Max)); u >= 0 {
		return min(u, 1)
	}
	return 0
}

// place returns where a number lies on the scale of a numeric parameter.
func (p Parameter) place(x float64) float64 {
	low, high := p.edges()
	a, b := p.warp(low), p.warp(high)
	return (p.warp(x) - a) / (b - a)
}

// Coordinate is ToUnit for a value that may not be one of the parameter's: of a numeric parameter
// it is outside of [0,1] for a number outside of the range. ok is false if the value has no place on
// the parameter's scale, such as a choice that it does not have.
func (p Parameter) Coordinate(value any) (u float64, ok bool) {
	if p.Type != Int && p.Type != Float {
		_, ok = p.Index(value)
		return p.ToUnit(value), ok
	}
	x, ok := Number(value)
	if !ok {
		return 0, false
	}
	u = p.place(x)
	return u, !math.IsNaN(u) && !math.IsInf(u, 0)
}

// FromUnit maps u, clamped to [0,1], to a value of the parameter. It is the inverse of
// ToUnit, rounded to the nearest value if there are steps. A numeric value is never
// outside [min,max]. NaN maps like 0.
func (p Parameter) FromUnit(u float64) any {
	if !(u > 0) {
		u = 0
	}
	u = min(u, 1)
	n, stepped := p.Cardinality()
	if p.Type != Int && p.Type != Float {
		return p.At(min(int(u*float64(n)), n-1))
	}
	low, high := p.edges()
	x := p.unwarp(p.warp(low)*(1-u) + p.warp(high)*u)
	if stepped {
		return p.At(p.nearest(x, n))
	}
	switch u {
	case 0:
		return *p.Min
	case 1:
		return *p.Max
	}
	return min(max(x, *p.Min), *p.Max) + 0 // +0 turns -0 into 0
}

// edges returns the ends of the range that maps to [0,1]: half a step beyond the first
// and the last value, as far as the scale allows.
func (p Parameter) edges() (low, high float64) {
	low, high = *p.Min, *p.Max
	n, stepped := p.Cardinality()
	if !stepped {
		return low, high
	}
	step := p.step()
	high = *p.Min + float64(n-1)*step
	switch {
	case p.Scale == Log:
		return max(low-step/2, low/2), high + step/2
	case p.Scale == Logit && p.Type == Float:
		return max(low-step/2, low/2), min(high+step/2, (1+high)/2, math.Nextafter(1, 0))
	default:
		return low - step/2, high + step/2
	}
}

// warp converts a value to the scale on which it is searched.
func (p Parameter) warp(x float64) float64 {
	switch p.Scale {
	case Log:
		return math.Log(x)
	case Logit:
		return logit(p.share(x))
	default:
		return x
	}
}

// unwarp is the inverse of warp.
func (p Parameter) unwarp(t float64) float64 {
	switch p.Scale {
	case Log:
		return math.Exp(t)
	case Logit:
		share := 1 / (1 + math.Exp(-t))
		if p.Type == Int {
			below, width := p.surround()
			return below + share*width
		}
		return share
	default:
		return t
	}
}

// share returns the argument of the logit: a float itself, which lies in (0,1), or the
// position of an integer between one step below the first value and one above the last.
// The percentages 1 to 99 are thus searched as the shares 0.01 to 0.99.
func (p Parameter) share(x float64) float64 {
	if p.Type != Int {
		return x
	}
	below, width := p.surround()
	return (x - below) / width
}

// surround returns the range of an integer with one more step at each end.
func (p Parameter) surround() (below, width float64) {
	n, _ := p.Cardinality()
	step := p.step()
	return *p.Min - step, float64(n+1) * step
}

// logit returns ln(x/(1-x)), accurate near 1/2 and near both ends.
func logit(x float64) float64 { return math.Log(x) - math.Log1p(-x) }
