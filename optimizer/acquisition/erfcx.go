package acquisition

import "math"

// Erfcx returns the scaled complementary error function exp(x²)·erfc(x).
func Erfcx(x float64) float64 {
	if x < 2 {
		return math.Exp(x*x) * math.Erfc(x)
	}
	// Continued fraction (Abramowitz and Stegun 7.1.14), from the tail up.
	f := x
	for k := 60; k >= 1; k-- {
		f = x + float64(k)/2/f
	}
	return 1 / (math.Sqrt(math.Pi) * f)
}
