package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// distribution is the distribution from which Optuna samples a parameter.
type distribution struct {
	kind      study.Type // Float, Int or Categorical; empty if err says what is wrong
	log       bool
	step      float64 // 0 if there is none
	low, high float64
	choices   []any // as a study has them
	err       error
}

// distributions keeps the distributions by their texts, so that each is read once.
type distributions map[string]*distribution

// get returns the distribution that a text describes, by its name in version 3 or earlier.
func (all distributions) get(text string) *distribution {
	if d := all[text]; d != nil {
		return d
	}
	var raw struct {
		Name       string `json:"name"`
		Attributes struct {
			Low, High pythonFloat
			Log       bool
			Step, Q   pythonFloat
			Choices   []any
		} `json:"attributes"`
	}
	d := &distribution{err: unmarshalPython([]byte(text), &raw)}
	a := raw.Attributes
	d.low, d.high, d.log = float64(a.Low), float64(a.High), a.Log || strings.Contains(raw.Name, "Log")
	switch raw.Name {
	case "CategoricalDistribution":
		d.kind, d.choices = study.Categorical, choices(a.Choices)
	case "FloatDistribution", "UniformDistribution", "LogUniformDistribution", "DiscreteUniformDistribution":
		d.kind = study.Float
	case "IntDistribution", "IntUniformDistribution", "IntLogUniformDistribution":
		d.kind = study.Int
	default:
		d.err = errors.Join(d.err, fmt.Errorf("the distribution %q is unknown: want a float, an int or a categorical one", raw.Name))
	}
	if d.step = max(float64(a.Step), float64(a.Q)); d.log || d.kind == study.Int && d.step == 1 {
		d.step = 0
	}
	all[text] = d
	return d
}

// choices returns the values that a study has for the choices of a categorical. A study knows
// neither None nor lists nor numbers beyond study.MaxExact, and a program gets each value as
// text, so no two may be written alike: the string of a second one has quotes.
func choices(from []any) []any {
	seen, made := map[string]bool{}, make([]any, len(from))
	for i, choice := range from {
		value, ok := study.Scalar(choice)
		if choice == nil {
			value, ok = "None", true
		}
		if n, whole := value.(int64); whole && (n > study.MaxExact || n < -study.MaxExact) {
			ok = false
		}
		text, err := json.Marshal(choice)
		if !ok {
			value = string(text) // it came from JSON
		}
		for n := 0; err == nil && seen[study.Format(value)]; n++ {
			value = string(text) + strings.Repeat("'", n)
		}
		seen[study.Format(value)] = true
		made[i] = value
	}
	return made
}

// value returns a parameter's value in a study for the number that Optuna stores: of a
// categorical, that is the index of its choice.
func (d *distribution) value(stored float64) any {
	whole := stored == math.Trunc(stored) && math.Abs(stored) <= study.MaxExact
	switch {
	case d.kind == study.Int && whole:
		return int64(stored)
	case d.kind != study.Categorical:
		return stored
	case whole && stored >= 0 && stored < float64(len(d.choices)):
		return d.choices[int(stored)]
	}
	return nil
}

// String describes the kind of a distribution.
func (d *distribution) String() string {
	if d.log {
		return "log " + string(d.kind)
	}
	return string(d.kind)
}

// seenParameter is a parameter as the trials of a study have it.
type seenParameter struct {
	name          string
	distributions []*distribution // different ones
	trials        int
}

// seen returns the parameters of all trials, in the order in which they first appeared.
func (s *optunaStudy) seen() (all []*seenParameter) {
	byName := map[string]*seenParameter{}
	for _, t := range s.trials {
		for _, p := range t.parameters {
			at := byName[p.name]
			if at == nil {
				at = &seenParameter{name: p.name}
				byName[p.name] = at
				all = append(all, at)
			}
			if at.trials++; !slices.Contains(at.distributions, p.distribution) {
				at.distributions = append(at.distributions, p.distribution)
			}
		}
	}
	return all
}

// spaceOf returns the search space that holds all points of the trials.
func spaceOf(r *Result, s *optunaStudy) ([]study.Parameter, error) {
	seen := s.seen()
	if len(seen) == 0 {
		return nil, fmt.Errorf("%w: no trial of study %q has parameters", ErrSource, s.name)
	}
	made := make([]study.Parameter, len(seen))
	var problems []error
	for i, p := range seen {
		var err error
		if made[i], err = p.study(); err == nil {
			_, err = celspace.New([]study.Parameter{made[i]}, nil, nil)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("parameter %q: %s", p.name, problemsOf(err)))
			continue
		}
		if made[i].Name != p.name {
			r.renamed(p.name, made[i].Name)
		}
		if len(p.distributions) > 1 {
			r.note("%s: its range changed while the study ran; it has all values of all trials", p.name)
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrSource, errors.Join(problems...))
	}
	s.conditions(r, made)
	return made, nil
}

// study returns the parameter whose values include those of all distributions.
func (p *seenParameter) study() (study.Parameter, error) {
	d := *p.distributions[0]
	for _, other := range p.distributions {
		switch {
		case other.err != nil:
			return study.Parameter{}, other.err
		case d.String() != other.String() || !slices.Equal(d.choices, other.choices):
			return study.Parameter{}, fmt.Errorf("it changed from %s to %s while the study ran, which no single range covers", &d, other)
		case d.step != other.step || d.step != 0 && math.Abs(math.Remainder(d.low-other.low, d.step)) > 1e-9*d.step:
			d.step = 0
		}
		d.low, d.high = min(d.low, other.low), max(d.high, other.high)
	}
	made := study.Parameter{Name: ParameterName(p.name), Type: d.kind, Values: d.choices}
	switch {
	case d.kind == study.Categorical && len(d.choices) == 1:
		return study.Parameter{Name: made.Name, Type: study.Fixed, Value: d.choices[0]}, nil
	case d.kind == study.Categorical:
		return made, nil
	case d.low == d.high || d.step > d.high-d.low:
		made.Type, made.Value = study.Fixed, d.value(d.low)
		return made, nil
	}
	made.Min, made.Max = &d.low, &d.high
	if d.log {
		made.Scale = study.Log
	}
	if d.step != 0 {
		made.Step = &d.step
	}
	return made, nil
}

// conditions gives each parameter that only some trials have its condition, if the values of
// one other parameter tell exactly which trials have it.
func (s *optunaStudy) conditions(r *Result, params []study.Parameter) {
	var points []map[string]any // of trials that ran to their end, so that nothing is missing
	for _, t := range s.trials {
		if t.state == "COMPLETE" && len(t.parameters) > 0 {
			points = append(points, t.point())
		}
	}
	for i := range params {
		p := &params[i]
		has := 0
		for _, point := range points {
			if _, ok := point[p.Name]; ok {
				has++
			}
		}
		if has == len(points) {
			continue
		}
		found := map[study.Type][]map[string][]any{}
		for j := range params {
			if values := activeAt(points, p.Name, &params[j]); values != nil && i != j {
				found[params[j].Type] = append(found[params[j].Type], map[string][]any{params[j].Name: values})
			}
		}
		likely := found[study.Categorical]
		if len(likely) == 0 {
			likely = found[study.Int]
		}
		if len(likely) != 1 {
			r.note("%s: only %d of %d completed trials have it, and %d other parameters tell which: say with when what it depends on, or the "+
				"other trials cannot be imported", p.Name, has, len(points), len(likely))
			continue
		}
		p.When = likely[0]
		for parent, values := range p.When {
			r.note("%s: %d of %d completed trials have it, exactly those where %s is one of %s: check its when", p.Name, has, len(points), parent,
				study.List(values))
		}
	}
}

// activeAt returns the values of parent at the points that have a parameter, if no point
// without it has one of them; otherwise nil. For an int, the values are a range whose
// neighbours were seen without the parameter.
func activeAt(points []map[string]any, name string, parent *study.Parameter) []any {
	var with, without []any
	for _, point := range points {
		value, known := point[parent.Name]
		_, active := point[name]
		switch {
		case active && !known:
			return nil
		case active && !slices.Contains(with, value):
			with = append(with, value)
		case !active && known && !slices.Contains(without, value):
			without = append(without, value)
		}
	}
	if len(with) == 0 || len(without) == 0 || slices.ContainsFunc(with, func(v any) bool { return slices.Contains(without, v) }) {
		return nil
	}
	switch parent.Type {
	case study.Categorical:
		return slices.DeleteFunc(slices.Clone(parent.Values), func(v any) bool { return !slices.Contains(with, v) })
	case study.Int:
		return intRange(with, without, parent)
	default:
		return nil
	}
}

// intRange returns all values of an int from the least to the greatest of some, if a value
// that is in without, or the end of the int's range, is next to each end.
func intRange(with, without []any, parent *study.Parameter) (all []any) {
	step := int64(1)
	if parent.Step != nil {
		step = int64(*parent.Step)
	}
	numbers := make([]int64, len(with))
	for i, v := range with {
		var whole bool
		if numbers[i], whole = v.(int64); !whole {
			return nil
		}
	}
	low, high := slices.Min(numbers), slices.Max(numbers)
	below := float64(low) <= *parent.Min || slices.Contains(without, any(low-step))
	above := float64(high+step) > *parent.Max || slices.Contains(without, any(high+step))
	if !below || !above || (high-low)/step >= space.MaxListed {
		return nil
	}
	for v := low; v <= high; v += step {
		if slices.Contains(without, any(v)) {
			return nil
		}
		all = append(all, v)
	}
	return all
}

// pythonFloat is a number in the JSON of Python, which may be NaN or infinite; null is 0.
type pythonFloat float64

// UnmarshalJSON reads a number, or its name.
func (f *pythonFloat) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	v, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%s is not a number", text)
	}
	*f = pythonFloat(v)
	return nil
}

// bareWord matches a string, or a number that JSON does not have and Python writes.
var bareWord = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?Infinity|NaN`)

// unmarshalPython decodes JSON as Python writes it: NaN and the infinities become strings.
func unmarshalPython(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(bareWord.ReplaceAllFunc(text, func(word []byte) []byte {
		if word[0] == '"' {
			return word
		}
		return fmt.Appendf(nil, "%q", word)
	})))
	decoder.UseNumber()
	return decoder.Decode(into)
}
