package space

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// Bounds on the size of a space. MaxName bounds the bytes of a parameter's name,
// MaxListed the values of a list.
const (
	MaxParameters  = 1000
	MaxName        = 64
	MaxConstraints = 64
	MaxListed      = 1000
)

// checkParameters checks each parameter and the uniqueness of their names, and fills in
// defaults. It returns which parameters are valid.
func checkParameters(found *check.Problems, path string, params []study.Parameter) (sound []bool) {
	sound = make([]bool, len(params))
	found.AddIf(len(params) == 0, path, "there are none: give at least one parameter to tune")
	if len(params) > MaxParameters {
		found.Add(path, "%d parameters are more than the most that a study can have, %d", len(params), MaxParameters)
		return sound
	}
	places := make(map[string]int)
	for i := range params {
		p, at, before := &params[i], fmt.Sprintf("%s[%d]", path, i), found.Failed
		if problem := NameProblem(p.Name); problem != "" {
			found.Add(at+".name", "%s", problem)
		}
		if first, ok := places[p.Name]; ok && p.Name != "" {
			found.Add(at+".name", "%q is already the name of parameters[%d]: names are unique", p.Name, first)
		} else {
			places[p.Name] = i
		}
		checkParameter(found, at, p)
		if found.Failed == before {
			checkPrior(found, at+".prior", p)
		}
		sound[i] = found.Failed == before
	}
	return sound
}

// NameProblem says why no parameter can have a name; it is empty if one can. A name stands in
// ${name}, --name=value and the templates of Jobs, so it has no characters with a meaning there.
func NameProblem(name string) string {
	first, _ := utf8.DecodeRuneInString(name)
	switch {
	case name == "":
		return "is missing: give the parameter a name"
	case first != '_' && !unicode.IsLetter(first) && !check.IsDigit(first):
		return fmt.Sprintf("%q is not a valid name: start with a letter, a digit or _", name)
	case !utf8.ValidString(name) || strings.HasSuffix(name, " ") || strings.ContainsFunc(name, func(c rune) bool {
		return !unicode.IsPrint(c) || strings.ContainsRune("={}$`", c)
	}):
		return fmt.Sprintf("%q is not a valid name: use printable characters other than = { } $ `, and no space at the end", name)
	case len(name) > MaxName:
		return fmt.Sprintf("%q is longer than %d bytes", name, MaxName)
	case study.ReservedWord(name):
		return fmt.Sprintf("%q is what ${%s} means in a command: choose another name", name, name)
	}
	return ""
}

// checkParameter checks everything that does not depend on other parameters.
func checkParameter(found *check.Problems, path string, p *study.Parameter) {
	switch p.Type {
	case study.Float, study.Int:
		p.Scale = cmp.Or(p.Scale, study.Linear)
		rejectFields(found, path, p, "values", "value", "reduction")
		checkNumeric(found, path, p)
	case study.Categorical, study.Ordinal:
		rejectFields(found, path, p, "min", "max", "step", "scale", "value", "reduction")
		checkValues(found, path, p)
	case study.Bool:
		rejectFields(found, path, p, "min", "max", "step", "scale", "values", "value", "reduction")
	case study.Fixed:
		rejectFields(found, path, p, "min", "max", "step", "scale", "values", "reduction")
		if p.Value == nil {
			found.Add(path+".value", "is missing: a fixed parameter has one, a string, a number or a boolean")
		} else if value, ok := study.Scalar(p.Value); ok {
			p.Value = value
		} else {
			found.Add(path+".value", "%s is not a string, a finite number or a boolean", study.Quote(p.Value))
		}
	case study.Fidelity:
		rejectFields(found, path, p, "step", "scale", "values", "value", "when")
		checkFidelity(found, path, p)
	case "":
		found.Add(path+".type", "is missing: %s", typeNames)
	default:
		found.Add(path+".type", "%q is not a parameter type%s: %s", p.Type,
			check.DidYouMean(string(p.Type), strings.Split(typeNames, ", ")), typeNames)
	}
}

const typeNames = "float, int, categorical, ordinal, bool, fixed, fidelity"

// rejectFields reports the named fields that are set.
func rejectFields(found *check.Problems, path string, p *study.Parameter, names ...string) {
	set := map[string]bool{
		"min": p.Min != nil, "max": p.Max != nil, "step": p.Step != nil, "scale": p.Scale != "",
		"values": p.Values != nil, "value": p.Value != nil, "reduction": p.Reduction != nil, "when": len(p.When) > 0,
	}
	for _, name := range names {
		found.AddIf(set[name], path+"."+name, "is not for type %s: leave it out", p.Type)
	}
}

// checkNumeric checks the range, the scale and the step of a float or an int.
func checkNumeric(found *check.Problems, path string, p *study.Parameter) {
	before := found.Failed
	for _, bound := range []struct {
		name  string
		value **float64
	}{{"min", &p.Min}, {"max", &p.Max}} {
		if *bound.value == nil {
			found.Add(path+"."+bound.name, "is missing: type %s needs min and max", p.Type)
			continue
		}
		*bound.value = new(**bound.value + 0)
		checkBound(found, path+"."+bound.name, p, **bound.value)
	}
	found.AddIf(!slices.Contains([]study.Scale{study.Linear, study.Log, study.Logit}, p.Scale), path+".scale",
		"%q is not a scale%s: linear, log, logit", p.Scale, check.DidYouMean(string(p.Scale), []string{"linear", "log", "logit"}))
	if found.Unread(path+".min", path+".max") || p.Min == nil || p.Max == nil || found.Failed > before {
		return
	}
	switch {
	case *p.Min > *p.Max:
		found.Add(path+".max", "%s is below min, %s: the range is empty", study.Format(*p.Max), study.Format(*p.Min))
	case *p.Min == *p.Max:
		found.Add(path+".max", "%[1]s is min as well: a range has more than one value; to keep one, use type: fixed with value: %[1]s",
			study.Format(*p.Max))
	case p.Type == study.Int && *p.Max-*p.Min > study.MaxExact:
		found.Add(path+".max", "%s is 2^53 or more above min: an int has fewer values", study.Format(*p.Max))
	default:
		checkStep(found, path+".step", p)
	}
}

// checkBound checks min or max on its own.
func checkBound(found *check.Problems, path string, p *study.Parameter, value float64) {
	switch {
	case !study.Finite(value):
		found.Add(path, "%v is not finite: write a finite number", value)
	case p.Type == study.Int && value != math.Trunc(value):
		found.Add(path, "%s is not a whole number: an int has whole bounds", study.Format(value))
	case p.Type == study.Int && math.Abs(value) > study.MaxExact:
		found.Add(path, "%s is beyond ±%d (2^53-1), the bounds of an int", study.Format(value), study.MaxExact)
	case math.Abs(value) > study.MaxFloat:
		found.Add(path, "%s is beyond ±1e300, the bounds of a float", study.Format(value))
	case p.Scale == study.Log && value <= 0:
		found.Add(path, "%s is not positive: scale log needs a range above 0", study.Format(value))
	case p.Scale == study.Logit && p.Type == study.Float && (value <= 0 || value >= 1):
		found.Add(path, "%s is not between 0 and 1: scale logit needs a range inside of (0, 1), ends excluded", study.Format(value))
	}
}

func checkStep(found *check.Problems, path string, p *study.Parameter) {
	if p.Step == nil || found.Unread(path) {
		return
	}
	span := *p.Max - *p.Min
	switch step := *p.Step; {
	case !(step > 0) || math.IsInf(step, 0):
		found.Add(path, "%s is not positive: write a positive step, or none", study.Format(step))
	case p.Type == study.Int && step != math.Trunc(step):
		found.Add(path, "%s is not a whole number: an int has whole steps", study.Format(step))
	case step > span:
		found.Add(path, "%s is more than the whole range, %s", study.Format(step), study.Format(span))
	case p.Type == study.Float && span/step > study.MaxSteps:
		found.Add(path, "%s makes more than 1e12 values of the range: write a larger step, or none", study.Format(step))
	}
}

// checkValues checks the values of a categorical or an ordinal. Two values that are
// written the same in a command would be one value to the program.
func checkValues(found *check.Problems, path string, p *study.Parameter) {
	found.AddIf(len(p.Values) < 2, path+".values", "%d values: type %s needs at least two", len(p.Values), p.Type)
	if len(p.Values) > MaxListed {
		found.Add(path+".values", "%d values are more than the most that are accepted, %d", len(p.Values), MaxListed)
		return
	}
	seen := make(map[string]int)
	for i, v := range p.Values {
		at := fmt.Sprintf("%s.values[%d]", path, i)
		value, ok := study.Scalar(v)
		if !ok {
			found.Add(at, "%s is not a string, a finite number or a boolean", study.Quote(v))
			continue
		}
		p.Values[i] = value
		if first, ok := seen[study.Format(value)]; ok {
			found.Add(at, "%s is already values[%d]: values are unique, as they are written in a command", study.Format(value), first)
			continue
		}
		seen[study.Format(value)] = i
	}
}
