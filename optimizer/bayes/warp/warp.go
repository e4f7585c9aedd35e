// Package warp implements the input warping of the Gaussian processes: the cumulative
// distribution function of Kumaraswamy's distribution, a monotone map of the unit
// interval to itself that can stretch either end or the middle (Snoek et al. 2014 with
// the Beta distribution; Cowen-Rivers et al. 2022).
//
// A coordinate x is first moved inside the interval, to u = ε + (1−2ε)·x with
// ε = Epsilon, and then
//
//	w(x; a, b) = 1 − (1 − u^a)^b
//
// for positive shapes a and b; with a = b = 1 it is u itself.
package warp

import "math"

// Epsilon is the distance that coordinates keep from 0 and 1, where the slope of w can
// be infinite. HEBO's submission to the NeurIPS 2020 competition used the same value.
const Epsilon = 1e-6

// The shapes' prior and bounds as in HEBO: log a and log b are normal with mean
// LogShapeMean and standard deviation LogShapeSD, and shapes stay below MaxShape.
// MinShape bounds them away from 0, where w is a step.
const (
	LogShapeMean = 0
	LogShapeSD   = 0.75
	MinShape     = 1e-2
	MaxShape     = 10
)

// Value returns w(x; a, b) for positive a and b. An x outside [0, 1] is clamped.
func Value(x, a, b float64) float64 {
	_, _, _, logQ := parts(x, a)
	return -math.Expm1(b * logQ)
}

// Gradient returns w(x; a, b) and its derivatives by x, a and b.
func Gradient(x, a, b float64) (w, dx, da, db float64) {
	logU, t, q, logQ := parts(x, a)
	power := math.Exp(b * logQ)
	common := b * power / q * t
	return -math.Expm1(b * logQ), (1 - 2*Epsilon) * common * a * math.Exp(-logU), common * logU, -power * logQ
}

// parts returns log u, t = u^a, q = 1 − t, which is positive, and log q.
func parts(x, a float64) (logU, t, q, logQ float64) {
	logU = logInside(x)
	y := a * logU
	t, q = math.Exp(y), -math.Expm1(y)
	if y > -math.Ln2 {
		return logU, t, q, math.Log(q)
	}
	return logU, t, q, math.Log1p(-t)
}

// logInside returns log u. Near 1 it counts from 1, since u has few digits there.
func logInside(x float64) float64 {
	x = min(max(x, 0), 1)
	if x > 0.5 {
		return math.Log1p(-(Epsilon + (1-2*Epsilon)*(1-x)))
	}
	return math.Log(Epsilon + (1-2*Epsilon)*x)
}
