package study

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Bounds on the size of a space.
const (
	maxParameters  = 1000
	maxNameLength  = 64
	maxConstraints = 64
	maxListed      = 1000
)

// checkParameters checks each parameter by itself and their names together, and
// fills in defaults. It tells which parameters are sound.
func checkParameters(r *report, path string, params []Parameter) (sound []bool) {
	sound = make([]bool, len(params))
	if len(params) == 0 {
		r.add(path, "there are none: give at least one parameter to tune")
	}
	if len(params) > maxParameters {
		r.add(path, "%d parameters are more than the most that a study can have, %d", len(params), maxParameters)
		return sound
	}
	places := make(map[string]int)
	variables := make(map[string]string)
	for i := range params {
		p, at, before := &params[i], fmt.Sprintf("%s[%d]", path, i), r.failed
		checkParameterName(r, at+".name", p.Name)
		variable := EnvironmentName(p.Name)
		if first, ok := places[p.Name]; ok && p.Name != "" {
			r.add(at+".name", "%q is already the name of parameters[%d]: names are unique", p.Name, first)
		} else if other, ok := variables[variable]; ok {
			r.add(at+".name", "%q and %q would both be %s in a program's environment: rename one", p.Name, other, variable)
		} else {
			places[p.Name] = i
			variables[variable] = p.Name
		}
		checkParameter(r, at, p)
		if r.failed == before {
			checkPrior(r, at+".prior", p)
		}
		sound[i] = r.failed == before
	}
	return sound
}

func checkParameterName(r *report, path, name string) {
	switch {
	case name == "":
		r.add(path, "is missing: give the parameter a name")
	case !isLetter(rune(name[0])) || strings.ContainsFunc(name, func(c rune) bool {
		return !isLetter(c) && !isDigit(c) && !strings.ContainsRune("_.-", c)
	}):
		r.add(path, "%q is no name: it starts with a letter and goes on with letters, digits, and the characters _ . -", name)
	case len(name) > maxNameLength:
		r.add(path, "%q is longer than %d characters", name, maxNameLength)
	case name == wordArgs || name == wordOverrides || name == wordFile:
		r.add(path, "%q is what ${%s} means in a command: choose another name", name, name)
	}
}

func isLetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c rune) bool { return c >= '0' && c <= '9' }

// checkParameter checks what does not depend on other parameters.
func checkParameter(r *report, path string, p *Parameter) {
	switch p.Type {
	case Float, Int:
		if p.Scale == "" {
			p.Scale = Linear
		}
		rejectFields(r, path, p, "values", "value")
		checkNumeric(r, path, p)
	case Categorical, Ordinal:
		rejectFields(r, path, p, "min", "max", "step", "scale", "value")
		checkValues(r, path, p)
	case Bool:
		rejectFields(r, path, p, "min", "max", "step", "scale", "values", "value")
	case Fixed:
		rejectFields(r, path, p, "min", "max", "step", "scale", "values")
		if p.Value == nil {
			r.add(path+".value", "is missing: a fixed parameter has one, a string, a number or a boolean")
		} else if value, ok := scalar(p.Value); ok {
			p.Value = value
		} else {
			r.add(path+".value", "%s is no string, finite number or boolean", show(p.Value))
		}
	case "":
		r.add(path+".type", "is missing: %s", typeNames)
	default:
		r.add(path+".type", "%q is no type of a parameter%s: %s", p.Type,
			didYouMean(string(p.Type), strings.Split(typeNames, ", ")), typeNames)
	}
}

const typeNames = "float, int, categorical, ordinal, bool, fixed"

// rejectFields reports those of the named fields that are set.
func rejectFields(r *report, path string, p *Parameter, names ...string) {
	set := map[string]bool{
		"min": p.Min != nil, "max": p.Max != nil, "step": p.Step != nil, "scale": p.Scale != "",
		"values": p.Values != nil, "value": p.Value != nil,
	}
	for _, name := range names {
		if set[name] {
			r.add(path+"."+name, "is not for type %s: leave it out", p.Type)
		}
	}
}

// checkNumeric checks the range, the scale and the step of a float or an int.
func checkNumeric(r *report, path string, p *Parameter) {
	before := r.failed
	for _, bound := range []struct {
		name  string
		value **float64
	}{{"min", &p.Min}, {"max", &p.Max}} {
		if *bound.value == nil {
			r.add(path+"."+bound.name, "is missing: type %s needs min and max", p.Type)
			continue
		}
		value := **bound.value + 0
		*bound.value = &value
		checkBound(r, path+"."+bound.name, p, value)
	}
	if !slices.Contains([]Scale{Linear, Log, Logit}, p.Scale) {
		r.add(path+".scale", "%q is no scale%s: linear, log, logit", p.Scale, didYouMean(string(p.Scale), []string{"linear", "log", "logit"}))
	}
	if p.Min == nil || p.Max == nil || r.failed > before || r.isBroken(path+".min") || r.isBroken(path+".max") {
		return
	}
	switch {
	case *p.Min > *p.Max:
		r.add(path+".max", "%s is below min, %s: the range is empty", Format(*p.Max), Format(*p.Min))
	case *p.Min == *p.Max:
		r.add(path+".max", "%[1]s is min as well: a range has more than one value; to keep one, use type: fixed with value: %[1]s",
			Format(*p.Max))
	case p.Type == Int && *p.Max-*p.Min >= maxExact:
		r.add(path+".max", "%s is 2^53 or more above min: an int has fewer values", Format(*p.Max))
	default:
		checkStep(r, path+".step", p)
	}
}

// checkBound checks min or max by itself.
func checkBound(r *report, path string, p *Parameter, value float64) {
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		r.add(path, "%v is not finite: write a finite number", value)
	case p.Type == Int && value != math.Trunc(value):
		r.add(path, "%s is no whole number: an int has whole bounds", Format(value))
	case p.Type == Int && math.Abs(value) > maxExact:
		r.add(path, "%s is beyond ±2^53, the bounds of an int", Format(value))
	case math.Abs(value) > maxFloat:
		r.add(path, "%s is beyond ±1e300, the bounds of a float", Format(value))
	case p.Scale == Log && value <= 0:
		r.add(path, "%s is not positive: scale log needs a range above 0", Format(value))
	case p.Scale == Logit && p.Type == Float && (value <= 0 || value >= 1):
		r.add(path, "%s is not between 0 and 1: scale logit needs a range inside of (0, 1), ends excluded", Format(value))
	}
}

func checkStep(r *report, path string, p *Parameter) {
	if p.Step == nil || r.isBroken(path) {
		return
	}
	span := *p.Max - *p.Min
	switch step := *p.Step; {
	case !(step > 0) || math.IsInf(step, 0):
		r.add(path, "%s is not positive: write a positive step, or none", Format(step))
	case p.Type == Int && step != math.Trunc(step):
		r.add(path, "%s is no whole number: an int has whole steps", Format(step))
	case step > span:
		r.add(path, "%s is more than the whole range, %s", Format(step), Format(span))
	case p.Type == Float && span/step > maxSteps:
		r.add(path, "%s makes more than 1e12 values of the range: write a larger step, or none", Format(step))
	}
}

// checkValues checks the values of a categorical or an ordinal. Two that are
// written alike in a command would be one to the program.
func checkValues(r *report, path string, p *Parameter) {
	if len(p.Values) < 2 {
		r.add(path+".values", "%d values: type %s needs at least two", len(p.Values), p.Type)
	}
	if len(p.Values) > maxListed {
		r.add(path+".values", "%d values are more than the most that are accepted, %d", len(p.Values), maxListed)
		return
	}
	seen := make(map[string]int)
	for i, v := range p.Values {
		at := fmt.Sprintf("%s.values[%d]", path, i)
		value, ok := scalar(v)
		if !ok {
			r.add(at, "%s is no string, finite number or boolean", show(v))
			continue
		}
		p.Values[i] = value
		if first, ok := seen[Format(value)]; ok {
			r.add(at, "%s is already values[%d]: values are unique, as they are written in a command", Format(value), first)
			continue
		}
		seen[Format(value)] = i
	}
}

// accepts says in a message what values the parameter takes.
func (p Parameter) accepts() string {
	switch p.Type {
	case Float, Int:
		kind := "a number"
		if p.Type == Int {
			kind = "a whole number"
		}
		text := fmt.Sprintf("%s from %s to %s", kind, Format(*p.Min), Format(*p.Max))
		if p.Step != nil {
			text += " in steps of " + Format(*p.Step)
		}
		return text
	case Bool:
		return "true or false"
	case Fixed:
		return Format(p.Value)
	default:
		return listValues(p.Values)
	}
}

// listValues is a short list for a message.
func listValues(values []any) string {
	const most = 12
	var texts []string
	for i, v := range values {
		if i == most {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, Format(v))
	}
	return strings.Join(texts, ", ")
}
