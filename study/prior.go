package study

import (
	"math"
)

// Prior is what a user believes of where the best value of a parameter lies. A
// numeric parameter takes Mean and SD, any other but a fixed one Weights.
type Prior struct {
	// Mean is the best guess, a value of the parameter's range. SD says how sure
	// it is, on the parameter's scale: in the parameter's own unit on the scale
	// linear, in powers of ten on log, in logits on logit.
	Mean *float64 `json:"mean,omitempty"`
	SD   *float64 `json:"sd,omitempty"`
	// Weights, all positive, say how probable each value is to be the best,
	// relative to the others: in the order of Values, false before true.
	Weights []float64 `json:"weights,omitempty"`
}

// UnitPrior returns the mean and the standard deviation of a numeric parameter's
// prior on [0,1], where ToUnit puts its values; ok is false where it has none.
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
