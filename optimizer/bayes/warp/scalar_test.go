package warp

import "math"

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
