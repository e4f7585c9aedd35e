package study

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Values of parameters keep their types in JSON: a float64 is written with a point or
// an exponent (1.0), an int64 without (1), and they are read back the same. Plain
// encoding/json would write both as 1 and read both as a float64.

// Finite reports whether no number is infinite or NaN.
func Finite(numbers ...float64) bool {
	return !slices.ContainsFunc(numbers, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// exactNumber is a float64 that JSON distinguishes from an integer.
type exactNumber float64

// MarshalJSON writes the shortest decimal that parses to the same number, always with a
// point or an exponent.
func (f exactNumber) MarshalJSON() ([]byte, error) {
	if !Finite(float64(f)) {
		return nil, fmt.Errorf("%v cannot be written in JSON; want a finite number", float64(f))
	}
	text := Format(float64(f))
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return []byte(text), nil
}

// exact returns v with every float64 in it replaced by an exactNumber.
func exact(v any) any {
	switch v := v.(type) {
	case float64:
		return exactNumber(v)
	case []any:
		return exactList(v)
	case map[string]any:
		return exactMap(v)
	case Point:
		return exactMap(v)
	default:
		return v
	}
}

func exactList(list []any) []any {
	if list == nil {
		return nil
	}
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = exact(v)
	}
	return out
}

func exactMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = exact(v)
	}
	return out
}

// unmarshalExact decodes JSON into v, with json.Number where v leaves a number's type
// open.
func unmarshalExact(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode(v)
}

// inexact replaces every json.Number in v, in place if possible, by the int64 or the
// float64 that it was written as.
func inexact(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		return number(v.String())
	case []any:
		for i := range v {
			if v[i], err = inexact(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = inexact(v[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// marshal is json.Marshal without escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// number parses a JSON number: an int64 if it is written as an integer that fits,
// otherwise a float64.
func number(text string) (any, error) {
	if !strings.ContainsAny(text, ".eE") && text != "-0" {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("%s is out of the range of a 64-bit float", text)
	}
	return f, nil
}

// MarshalJSON encodes the point so that UnmarshalJSON returns the same types.
func (p Point) MarshalJSON() ([]byte, error) { return marshal(exactMap(p)) }

// UnmarshalJSON decodes a point; a number with a point or an exponent is a float64, any
// other an int64.
func (p *Point) UnmarshalJSON(data []byte) error {
	var m map[string]any
	if err := unmarshalExact(data, &m); err != nil {
		return fmt.Errorf("read a point: %w", err)
	}
	if _, err := inexact(m); err != nil {
		return fmt.Errorf("read a point: %w", err)
	}
	*p = m
	return nil
}

// The plain types have the fields of the corresponding types, but no methods.
type (
	plainParameter Parameter
	plainAlgorithm Algorithm
	plainSpec      Spec
)

// MarshalJSON keeps the types of the parameter's values.
func (p Parameter) MarshalJSON() ([]byte, error) {
	plain := plainParameter(p)
	plain.Values, plain.Value = exactList(p.Values), exact(p.Value)
	plain.When = conditions(p)
	return marshal(plain)
}

// UnmarshalJSON keeps the types of the parameter's values.
func (p *Parameter) UnmarshalJSON(data []byte) error {
	var plain plainParameter
	if err := unmarshalExact(data, &plain); err != nil {
		return fmt.Errorf("read a parameter: %w", err)
	}
	open := []any{plain.Values, plain.Value}
	for _, values := range plain.When {
		open = append(open, values)
	}
	if _, err := inexact(open); err != nil {
		return fmt.Errorf("read parameter %s: %w", plain.Name, err)
	}
	plain.Value = open[1]
	*p = Parameter(plain)
	return nil
}

// MarshalJSON keeps the types of the settings.
func (a Algorithm) MarshalJSON() ([]byte, error) {
	a.Settings = exactMap(a.Settings)
	return marshal(plainAlgorithm(a))
}

// UnmarshalJSON keeps the types of the settings.
func (a *Algorithm) UnmarshalJSON(data []byte) error {
	var plain plainAlgorithm
	if err := unmarshalExact(data, &plain); err != nil {
		return fmt.Errorf("read an algorithm: %w", err)
	}
	if _, err := inexact(plain.Settings); err != nil {
		return fmt.Errorf("read the settings of algorithm %s: %w", plain.Name, err)
	}
	*a = Algorithm(plain)
	return nil
}

// plainEarlyStopping has no methods of its own.
type plainEarlyStopping EarlyStopping

// MarshalJSON keeps the types of the settings.
func (e EarlyStopping) MarshalJSON() ([]byte, error) {
	e.Settings = exactMap(e.Settings)
	return marshal(plainEarlyStopping(e))
}

// UnmarshalJSON keeps the types of the settings.
func (e *EarlyStopping) UnmarshalJSON(data []byte) error {
	var plain plainEarlyStopping
	if err := unmarshalExact(data, &plain); err != nil {
		return fmt.Errorf("read earlyStopping: %w", err)
	}
	if _, err := inexact(plain.Settings); err != nil {
		return fmt.Errorf("read the settings of early stopping %s: %w", plain.Name, err)
	}
	*e = EarlyStopping(plain)
	return nil
}

// MarshalJSON keeps the types of the initial points' values.
func (s Spec) MarshalJSON() ([]byte, error) {
	initial := make([]map[string]any, len(s.Initial))
	for i, point := range s.Initial {
		initial[i] = exactMap(point)
	}
	s.Initial = initial
	return marshal(plainSpec(s))
}

// UnmarshalJSON keeps the types of the initial points' values.
func (s *Spec) UnmarshalJSON(data []byte) error {
	var plain plainSpec
	if err := unmarshalExact(data, &plain); err != nil {
		return fmt.Errorf("read a study's spec: %w", err)
	}
	for i, point := range plain.Initial {
		if _, err := inexact(point); err != nil {
			return fmt.Errorf("read initial point %d: %w", i, err)
		}
	}
	for _, e := range plain.LearnFrom {
		for i, t := range e.Trials {
			if _, err := inexact(t.Parameters); err != nil {
				return fmt.Errorf("read trial %d of the earlier study %s: %w", i, e.Study, err)
			}
		}
	}
	*s = Spec(plain)
	return nil
}
