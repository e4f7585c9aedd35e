package transform

import "math"

const (
	searchGrid      = 14   // intervals of the first look
	searchTolerance = 1e-8 // of λ, absolute: near the square root of rounding
	searchLimit     = 100  // iterations; some 10 are needed
)

// maximize returns the place and the value of the maximum of f on [low, high]. f may
// have several maxima or be −Inf in places: a grid finds the bracket, and Brent's
// method (Brent 1973, chapter 5) the place in it.
func maximize(f func(float64) float64, low, high float64) (x, value float64) {
	step := (high - low) / searchGrid
	best := 0
	value = math.Inf(-1)
	for i := range searchGrid + 1 {
		if v := f(low + float64(i)*step); v > value {
			best, value = i, v
		}
	}
	x = low + float64(best)*step
	if math.IsInf(value, -1) {
		return x, value
	}
	if at, v := brent(f, max(low, x-step), min(high, x+step)); v > value {
		return at, v
	}
	return x, value
}

// brent returns a local maximum of f on [a, b]. It uses parabolas through the three
// best points, and golden sections if those do not converge.
func brent(f func(float64) float64, a, b float64) (x, fx float64) {
	golden := (3 - math.Sqrt(5)) / 2
	x = a + golden*(b-a)
	fx = f(x)
	w, fw, v, fv := x, fx, x, fx
	var step, before float64
	for range searchLimit {
		middle := (a + b) / 2
		if math.Abs(x-middle) <= 2*searchTolerance-(b-a)/2 {
			break
		}
		last := before
		before, step = step, parabola(x, fx, w, fw, v, fv)
		// No parabola: it has no extremum in the bracket, or does not halve the
		// step before last.
		if !(math.Abs(last) > searchTolerance && math.Abs(step) < math.Abs(last)/2 && x+step > a && x+step < b) {
			before = b - x
			if x >= middle {
				before = a - x
			}
			step = golden * before
		}
		u := x + step
		if math.Abs(step) < searchTolerance {
			u = x + math.Copysign(searchTolerance, step)
		}
		fu := f(u)
		switch {
		case fu >= fx:
			if u >= x {
				a = x
			} else {
				b = x
			}
			v, fv, w, fw, x, fx = w, fw, x, fx, u, fu
			continue
		case u < x:
			a = u
		default:
			b = u
		}
		if fu >= fw || w == x {
			v, fv, w, fw = w, fw, u, fu
		} else if fu >= fv || v == x || v == w {
			v, fv = u, fu
		}
	}
	return x, fx
}

// parabola returns the step from x to the extremum of the parabola through three
// points; NaN or infinite if there is none.
func parabola(x, fx, w, fw, v, fv float64) float64 {
	r := (x - w) * (fx - fv)
	q := (x - v) * (fx - fw)
	return -((x-v)*q - (x-w)*r) / (2 * (q - r))
}
