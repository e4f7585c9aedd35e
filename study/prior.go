package study

import (
	"math"
	"slices"
)

// Prior is a belief about the best value of a parameter. Numeric parameters use Mean
// and SD, all others except fixed ones use Weights.
type Prior struct {
	// Mean is the best guess, within the parameter's range. SD is its uncertainty on
	// the parameter's scale: in the parameter's unit for linear, in powers of ten for
	// log, in logits for logit.
	Mean *float64 `json:"mean,omitempty"`
	SD   *float64 `json:"sd,omitempty"`
	// Weights are positive and give the relative probability of each value to be the
	// best: in the order of Values, false before true.
	Weights []float64 `json:"weights,omitempty"`
}

// Shares returns positive weights divided by their sum, which may overflow.
func Shares(weights []float64) []float64 {
	largest := slices.Max(weights)
	shares, sum := make([]float64, len(weights)), 0.0
	for i, w := range weights {
		shares[i] = w / largest
		sum += shares[i]
	}
	for i := range shares {
		shares[i] /= sum
	}
	return shares
}

// UnitPrior returns the mean and the standard deviation of a numeric parameter's prior
// on [0,1], the scale of ToUnit; ok is false if there is no prior.
func (p Parameter) UnitPrior() (mean, sd float64, ok bool) {
	if p.Prior == nil || p.Prior.Mean == nil || p.Prior.SD == nil {
		return 0, 0, false
	}
	low, high := p.edges()
	width := *p.Prior.SD
	if p.Scale == Log {
		width *= math.Ln10
	}
	return p.ToUnit(*p.Prior.Mean), width / (p.warp(high) - p.warp(low)), true
}
