package space

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// checkPrior checks the prior of a parameter that is otherwise valid.
func checkPrior(found *check.Problems, path string, p *study.Parameter) {
	if p.Prior == nil {
		return
	}
	switch p.Type {
	case study.Float, study.Int:
		checkNormal(found, path, p)
	case study.Categorical, study.Ordinal, study.Bool:
		checkWeights(found, path, p)
	default:
		found.Add(path, "is not for type %s: leave it out", p.Type)
	}
}

func checkNormal(found *check.Problems, path string, p *study.Parameter) {
	found.AddIf(p.Prior.Weights != nil, path+".weights", "is not for type %s: write mean and sd", p.Type)
	switch mean := p.Prior.Mean; {
	case mean == nil:
		found.Add(path+".mean", "is missing: a prior of type %s has mean and sd", p.Type)
	case !(*mean >= *p.Min && *mean <= *p.Max):
		found.Add(path+".mean", "%s is outside of the range, %s to %s", study.Format(*mean), study.Format(*p.Min), study.Format(*p.Max))
	}
	switch sd := p.Prior.SD; {
	case sd == nil:
		found.Add(path+".sd", "is missing: a prior of type %s has mean and sd", p.Type)
	case !(*sd > 0) || math.IsInf(*sd, 0):
		found.Add(path+".sd", "%s is not a positive number: write a standard deviation %s", study.Format(*sd), unit(p.Scale))
	}
}

// unit names, for a message, the unit of distances on the scale.
func unit(s study.Scale) string {
	switch s {
	case study.Log:
		return "in powers of ten, as the scale is log"
	case study.Logit:
		return "in logits, as the scale is logit"
	default:
		return "in the parameter's unit"
	}
}

func checkWeights(found *check.Problems, path string, p *study.Parameter) {
	found.AddIf(p.Prior.Mean != nil, path+".mean", "is not for type %s: write weights", p.Type)
	found.AddIf(p.Prior.SD != nil, path+".sd", "is not for type %s: write weights", p.Type)
	n, _ := p.Cardinality()
	if len(p.Prior.Weights) != n {
		found.Add(path+".weights", "%d weights for %d values: write one for each value, in their order", len(p.Prior.Weights), n)
		return
	}
	if i := slices.IndexFunc(p.Prior.Weights, func(w float64) bool { return !(w > 0) || math.IsInf(w, 0) }); i >= 0 {
		found.Add(path+".weights", "%s, the weight of %s, is not a positive number: to exclude a value, leave it out of the study",
			study.Format(p.Prior.Weights[i]), study.Format(p.At(i)))
	}
}
