package acquisition

import "math"

const (
	// logSqrt2Pi is ½ ln(2π), sqrtHalfPi is √(π/2).
	logSqrt2Pi = 0.918938533204672741780329736405617639861397473637783412817
	sqrtHalfPi = 1.253314137315500251207882642405522626503493370304969158314
	// fraction is where Mills' ratio goes over to its continued fraction.
	fraction = 3
)

// LogCDF returns log Φ(z), the logarithm of the standard normal distribution
// function, accurate to rounding also where Φ underflows or is nearly 1.
func LogCDF(z float64) float64 {
	value, _ := LogCDFGradient(z)
	return value
}

// LogCDFGradient returns LogCDF and its derivative φ(z)/Φ(z), the inverse Mills
// ratio, accurate to rounding in z as well.
func LogCDFGradient(z float64) (value, slope float64) {
	if z > -1 {
		value = math.Log1p(-math.Erfc(z/math.Sqrt2) / 2)
		return value, math.Exp(logDensity(z) - value)
	}
	ratio, _ := mills(-z)
	return logDensity(z) + math.Log(ratio), 1 / ratio
}

// Erfcx returns the scaled complementary error function exp(x²)·erfc(x); +Inf
// below about −26.6, where it overflows.
func Erfcx(x float64) float64 {
	if x*math.Sqrt2 < fraction {
		square := x * x
		// The rounding error of x² would be multiplied by x².
		return math.Exp(square) * math.Exp(math.FMA(x, x, -square)) * math.Erfc(x)
	}
	ratio, _ := mills(x * math.Sqrt2)
	return ratio / sqrtHalfPi
}

// mills returns Mills' ratio R(t) = (1 − Φ(t))/φ(t) for t ≥ 1, and
// 1 − t·R(t), which is (φ(z) + z·Φ(z))/φ(z) at z = −t.
//
// From t = 3 on, R(t) = 1/(t + g) with Laplace's continued fraction
// g = 1/(t + 2/(t + 3/(t + …))), and 1 − t·R(t) = g/(t + g) without the
// cancellation that would lose about 2·log10(t) digits.
func mills(t float64) (ratio, deficit float64) {
	if t < fraction {
		ratio = sqrtHalfPi * Erfcx(t/math.Sqrt2)
		return ratio, 1 - t*ratio
	}
	// The terms that rounding sees, by trial against 60 digits.
	terms := 9 + 600/(t*t)
	f := t
	for k := math.Floor(terms); k >= 2; k-- {
		f = t + k/f
	}
	g := 1 / f
	ratio = 1 / (t + g)
	return ratio, g * ratio
}

// logDensity returns log φ(z).
func logDensity(z float64) float64 { return -z*z/2 - logSqrt2Pi }
