package katib

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/study"
)

// The defaults of an Experiment: Katib has no limit on trials, and runs three at once.
const (
	MaxTrials   = 100
	Parallelism = 3
)

// Parameter is a parameter of an Experiment, kubeflow.org/v1beta1. Its numbers are strings.
type Parameter struct {
	Name string `yaml:"name"`
	// Type is int, double, discrete or categorical.
	Type  string        `yaml:"parameterType"`
	Space FeasibleSpace `yaml:"feasibleSpace"`
}

// FeasibleSpace holds the values of a Parameter.
type FeasibleSpace struct {
	Min  string `yaml:"min"`
	Max  string `yaml:"max"`
	Step string `yaml:"step"`
	// List has the values of a discrete or categorical parameter.
	List []string `yaml:"list"`
	// Distribution is uniform, logUniform, normal, logNormal or empty.
	Distribution string `yaml:"distribution"`
}

// Study returns the study's parameter of the same name. Where the meaning changes, it calls
// note with a sentence in the form of fmt.Printf. A parameter with one value is a fixed
// one. The error names the field, its value and what would be accepted; what Katib
// does not restrict, such as an empty range, is left to the study's own checks.
func (p *Parameter) Study(note func(format string, args ...any)) (study.Parameter, error) {
	made := study.Parameter{Name: p.Name}
	switch p.Type {
	case "categorical":
		made.Type = study.Categorical
		for _, v := range p.Space.List {
			if !slices.Contains(made.Values, any(v)) {
				made.Values = append(made.Values, v)
			}
		}
		return fixed(made), nil
	case "discrete":
		values, err := p.numbers()
		made.Type, made.Values = study.Ordinal, values
		return fixed(made), err
	case "int":
		made.Type = study.Int
	case "double":
		made.Type = study.Float
	default:
		return made, fmt.Errorf("parameterType %q: want int, double, discrete or categorical", p.Type)
	}
	for _, bound := range []struct {
		name, text string
		into       **float64
	}{{"min", p.Space.Min, &made.Min}, {"max", p.Space.Max, &made.Max}, {"step", p.Space.Step, &made.Step}} {
		if bound.text == "" && bound.name == "step" {
			continue
		}
		v, err := strconv.ParseFloat(bound.text, 64)
		if err != nil {
			return made, fmt.Errorf("feasibleSpace.%s %q: want a number", bound.name, bound.text)
		}
		*bound.into = &v
	}
	if *made.Min == *made.Max {
		return study.Parameter{Name: p.Name, Type: study.Fixed, Value: *made.Min}, nil
	}
	p.scale(&made, note)
	return made, nil
}

// scale sets the scale by the distribution.
func (p *Parameter) scale(made *study.Parameter, note func(format string, args ...any)) {
	switch p.Space.Distribution {
	case "", "uniform":
	case "logUniform":
		made.Scale = study.Log
	case "logNormal":
		made.Scale = study.Log
		note("%s: logNormal became the log scale, without a preference for its middle", p.Name)
	default:
		note("%s: distribution %s became uniform", p.Name, p.Space.Distribution)
	}
	if made.Scale == study.Log && made.Step != nil {
		made.Scale = ""
		note("%s: a step goes with the linear scale, not with %s", p.Name, p.Space.Distribution)
	}
}

// numbers returns the list of a discrete parameter, sorted.
func (p *Parameter) numbers() ([]any, error) {
	values := make([]float64, len(p.Space.List))
	for i, text := range p.Space.List {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("feasibleSpace.list[%d] %q: want a number", i, text)
		}
		values[i] = v
	}
	slices.Sort(values)
	return each.Of(slices.Compact(values), func(v float64) any { return v }), nil
}

// fixed makes a list with one value a fixed parameter.
func fixed(p study.Parameter) study.Parameter {
	if len(p.Values) != 1 {
		return p
	}
	return study.Parameter{Name: p.Name, Type: study.Fixed, Value: p.Values[0]}
}
