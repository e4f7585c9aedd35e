package acquisition

import "math"

// LogCDF returns log Φ(z), the logarithm of the standard normal distribution
// function, accurate also in its lower tail.
func LogCDF(z float64) float64 {
	if z > -1 {
		return math.Log1p(-math.Erfc(z/math.Sqrt2) / 2)
	}
	return -z*z/2 + math.Log(Erfcx(-z/math.Sqrt2)/2)
}

// logH returns log(φ(z) + z·Φ(z)).
func logH(z float64) float64 {
	switch {
	case z > -1:
		return math.Log(math.Exp(-z*z/2-logSqrt2Pi) + z*math.Erfc(-z/math.Sqrt2)/2)
	case z > -1e6:
		w := math.Log(-z*Erfcx(-z/math.Sqrt2)) + halfLogHalfPi
		return -z*z/2 - logSqrt2Pi + log1mExp(w)
	default:
		return -z*z/2 - logSqrt2Pi - 2*math.Log(-z)
	}
}

// log1mExp returns log(1 − exp(w)) for w < 0 (Mächler 2012, Accurately
// computing log(1 − exp(−|a|))).
func log1mExp(w float64) float64 {
	if w > -math.Ln2 {
		return math.Log(-math.Expm1(w))
	}
	return math.Log1p(-math.Exp(w))
}
