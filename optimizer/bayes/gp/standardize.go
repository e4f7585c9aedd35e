package gp

import "math"

// Scale maps outcomes to standardised ones and back: y = Mean + SD·z.
type Scale struct {
	Mean float64
	// SD is positive.
	SD float64
}

// Standardize returns the outcomes minus their mean, divided by their standard
// deviation (with n−1 degrees of freedom), and the scale that does it. Outcomes without
// spread (one outcome, all equal, or differing only by rounding) give zeros and SD 1,
// so that a posterior still has a sensible width. Any finite outcomes are allowed;
// intermediate sums do not overflow.
func Standardize(y []float64) ([]float64, Scale) {
	z := make([]float64, len(y))
	if len(y) == 0 {
		return z, Scale{SD: 1}
	}
	var largest float64
	for _, v := range y {
		largest = max(largest, math.Abs(v))
	}
	unit := 1.0
	if largest > 0 {
		// A power of two makes the division exact; it is halved, as 2^1024 overflows.
		_, exponent := math.Frexp(largest)
		unit = math.Ldexp(1, exponent-1)
	}
	var mean, squares float64
	for i, v := range y {
		z[i] = v / unit
		mean += (z[i] - mean) / float64(i+1)
	}
	for _, v := range z {
		squares += (v - mean) * (v - mean)
	}
	sd := math.Sqrt(squares / float64(max(len(y)-1, 1)))
	sd = min(sd, math.MaxFloat64/unit) // the outcomes ±MaxFloat64 have a larger one
	// The values in z are at most 2, so a spread below 1e-14 is rounding error.
	if sd <= 1e-14 || sd*unit == 0 {
		clear(z)
		return z, Scale{Mean: mean * unit, SD: 1}
	}
	for i, v := range z {
		z[i] = (v - mean) / sd
	}
	return z, Scale{Mean: mean * unit, SD: sd * unit}
}
