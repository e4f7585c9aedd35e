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
