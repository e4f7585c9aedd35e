package gp

import "math"

// Prior is a probability density of a positive hyperparameter v.
type Prior interface {
	// LogDensity returns log p(v) at v = exp(logV), up to a constant, and its
	// derivative with respect to logV. p is the density of v itself, not of log v: its
	// maximum is the mode of v.
	LogDensity(logV float64) (value, derivative float64)
}

// LogNormal is the density of v if log v is normal with mean Mu and standard deviation
// Sigma; its mode is exp(Mu − Sigma²).
type LogNormal struct{ Mu, Sigma float64 }

// LogDensity implements Prior.
func (p LogNormal) LogDensity(logV float64) (value, derivative float64) {
	z := (logV - p.Mu) / p.Sigma
	return -logV - z*z/2, -1 - z/p.Sigma
}

// Gamma is the density proportional to v^(Shape−1)·exp(−Rate·v); its mode is
// (Shape−1)/Rate.
type Gamma struct{ Shape, Rate float64 }

// LogDensity implements Prior.
func (p Gamma) LogDensity(logV float64) (value, derivative float64) {
	v := p.Rate * math.Exp(logV)
	return (p.Shape-1)*logV - v, p.Shape - 1 - v
}

// Softplus turns a density of v into the density of s, where v = ln(1 + eˢ): it multiplies
// Prior's by dv/ds = 1 − e⁻ᵛ. Software that searches for s instead of v maximises this one;
// GPy does. It can have a mode where Prior has none, such as a Gamma whose Shape is below 1.
type Softplus struct{ Prior Prior }

// LogDensity implements Prior.
func (p Softplus) LogDensity(logV float64) (value, derivative float64) {
	value, derivative = p.Prior.LogDensity(logV)
	v := math.Exp(logV)
	value += math.Log(-math.Expm1(-v))
	switch grown := math.Expm1(v); {
	case grown == 0: // v is 0 in a float64
		derivative++
	case !math.IsInf(grown, 1):
		derivative += v / grown
	}
	return value, derivative
}

// Flat is the improper uniform prior.
type Flat struct{}

// LogDensity implements Prior.
func (Flat) LogDensity(float64) (value, derivative float64) { return 0, 0 }
