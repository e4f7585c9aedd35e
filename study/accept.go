package study

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Has reports whether value is a value of the parameter, with the right type.
func (p Parameter) Has(value any) bool {
	if p.Type == Float && p.Step == nil {
		x, ok := value.(float64)
		return ok && x >= *p.Min && x <= *p.Max
	}
	k, ok := p.Index(value)
	return ok && p.At(k) == value
}

// Convert converts a decoded value to a value of the parameter.
func (p Parameter) Convert(raw any) (any, error) {
	value, ok := Scalar(raw)
	if !ok {
		return nil, fmt.Errorf("%s is not a string, a finite number or a boolean", Quote(raw))
	}
	refused := fmt.Errorf("%s is not accepted; want %s", Quote(raw), p.Accepts())
	if p.Type == Float || p.Type == Int {
		x, ok := Number(value)
		if !ok || x < *p.Min || x > *p.Max {
			return nil, refused
		}
		n, stepped := p.Cardinality()
		if !stepped {
			return x, nil
		}
		at := p.At(p.nearest(x, n))
		grid, _ := Number(at)
		step := p.step()
		if math.Abs(x-grid) > 1e-9*step {
			return nil, refused
		}
		return at, nil
	}
	k, ok := p.Index(value)
	if !ok {
		return nil, fmt.Errorf("%w%s", refused, p.misread(value))
	}
	return p.At(k), nil
}

// misread returns advice if a boolean is none of the parameter's values, but may have been one: a
// word that some tools read as a boolean.
func (p Parameter) misread(value any) string {
	if _, ok := value.(bool); !ok {
		return ""
	}
	for _, v := range p.Listed() {
		word, _ := v.(string)
		if _, ok := BooleanWord(word); ok {
			return fmt.Sprintf("; put %s in quotes, as some tools read it as a boolean", word)
		}
	}
	return ""
}

// Accepts describes the accepted values for messages.
func (p Parameter) Accepts() string {
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
	case Fidelity:
		levels := p.Levels()
		values := make([]any, len(levels))
		for i, level := range levels {
			values[i] = level
		}
		return List(values)
	default:
		return List(p.Values)
	}
}

// Listed returns the values that the study file lists for the parameter: the one of a fixed
// parameter, those of a categorical or an ordinal, and none for others.
func (p Parameter) Listed() []any {
	if p.Type == Fixed {
		return []any{p.Value}
	}
	return p.Values
}

// Lists reports whether the parameter lists its values, and each of them is of a kind.
func (p Parameter) Lists(is func(any) bool) bool {
	if !slices.Contains([]Type{Fixed, Categorical, Ordinal}, p.Type) {
		return false
	}
	return !slices.ContainsFunc(p.Listed(), func(v any) bool { return !is(v) })
}

// Numeric reports whether every value of the parameter is a number that a constraint may use:
// that of a fidelity is none.
func (p Parameter) Numeric() bool {
	return p.Type == Float || p.Type == Int || p.Lists(func(v any) bool { _, ok := Number(v); return ok })
}

// Boolean reports whether every value of the parameter is true or false.
func (p Parameter) Boolean() bool {
	return p.Type == Bool || len(p.Listed()) > 0 && p.Lists(func(v any) bool { _, ok := v.(bool); return ok })
}

// List formats values as a short list for messages.
func List(values []any) string {
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
