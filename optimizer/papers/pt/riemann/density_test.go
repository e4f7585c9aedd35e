package riemann

import "math"

// LogDensity returns the logarithm of the density at y.
func (d Distribution) LogDensity(y float64) float64 {
	i := d.bucket(y)
	switch i {
	case 0:
		return d.logP[0] + logHalfNormal((y-d.borders[0])/d.low) - math.Log(d.low)
	case d.last():
		return d.logP[i] + logHalfNormal((y-d.borders[i-1])/d.high) - math.Log(d.high)
	default:
		return d.logP[i] - math.Log(d.borders[i]-d.borders[i-1])
	}
}

// logHalfNormal returns the logarithm of twice the standard normal density.
func logHalfNormal(z float64) float64 { return math.Log(halfMean) - z*z/2 }
