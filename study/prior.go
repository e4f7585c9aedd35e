package study

import (
	"math"
	"slices"
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

// checkPrior checks the prior of a parameter that is sound otherwise.
func checkPrior(r *report, path string, p *Parameter) {
	if p.Prior == nil {
		return
	}
	switch p.Type {
	case Float, Int:
		checkNormal(r, path, p)
	case Categorical, Ordinal, Bool:
		checkWeights(r, path, p)
	default:
		r.add(path, "is not for type %s: leave it out", p.Type)
	}
}

func checkNormal(r *report, path string, p *Parameter) {
	if p.Prior.Weights != nil {
		r.add(path+".weights", "is not for type %s: write mean and sd", p.Type)
	}
	switch mean := p.Prior.Mean; {
	case mean == nil:
		r.add(path+".mean", "is missing: a prior of type %s has mean and sd", p.Type)
	case !(*mean >= *p.Min && *mean <= *p.Max):
		r.add(path+".mean", "%s is outside of the range, %s to %s", Format(*mean), Format(*p.Min), Format(*p.Max))
	}
	switch sd := p.Prior.SD; {
	case sd == nil:
		r.add(path+".sd", "is missing: a prior of type %s has mean and sd", p.Type)
	case !(*sd > 0) || math.IsInf(*sd, 0):
		r.add(path+".sd", "%s is no positive number: write a standard deviation %s", Format(*sd), p.Scale.unit())
	}
}

// unit says in a message what distances on the scale are counted in.
func (s Scale) unit() string {
	switch s {
	case Log:
		return "in powers of ten, as the scale is log"
	case Logit:
		return "in logits, as the scale is logit"
	default:
		return "in the parameter's unit"
	}
}

func checkWeights(r *report, path string, p *Parameter) {
	for _, field := range []struct {
		name string
		set  bool
	}{{"mean", p.Prior.Mean != nil}, {"sd", p.Prior.SD != nil}} {
		if field.set {
			r.add(path+"."+field.name, "is not for type %s: write weights", p.Type)
		}
	}
	n, _ := p.Cardinality()
	if len(p.Prior.Weights) != n {
		r.add(path+".weights", "%d weights for %d values: write one for each value, in their order", len(p.Prior.Weights), n)
		return
	}
	if i := slices.IndexFunc(p.Prior.Weights, func(w float64) bool { return !(w > 0) || math.IsInf(w, 0) }); i >= 0 {
		r.add(path+".weights", "%s, the weight of %s, is no positive number: to exclude a value, leave it out of the study",
			Format(p.Prior.Weights[i]), Format(p.At(i)))
	}
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
