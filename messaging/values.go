package messaging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// JSON has one kind of number, a point has two: 3 is an int64, 3.0 a float64. In
// an assignment a float therefore always has a decimal point or an exponent, and
// a number without either is an integer. Programs that read plain JSON numbers
// need not care.

// MarshalJSON writes the assignment; see the comment above on its parameters.
func (a Assignment) MarshalJSON() ([]byte, error) {
	type plain Assignment
	return json.Marshal(struct {
		plain
		Parameters point `json:"parameters"`
	}{plain(a), point(a.Parameters)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Assignment) UnmarshalJSON(data []byte) error {
	type plain Assignment
	var v struct {
		plain
		Parameters point `json:"parameters"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	*a = Assignment(v.plain)
	a.Parameters = study.Point(v.Parameters)
	return nil
}

// UnmarshalJSON reads a result. A metric that is null is an error: read as a
// plain map it would silently become 0.
func (r *Result) UnmarshalJSON(data []byte) error {
	type plain Result
	var v struct {
		plain
		Metrics metrics `json:"metrics"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	*r = Result(v.plain)
	r.Metrics = v.Metrics
	return nil
}

// UnmarshalJSON reads a measurement, with the same care as a result.
func (m *Measurement) UnmarshalJSON(data []byte) error {
	type plain Measurement
	var v struct {
		plain
		Metrics metrics `json:"metrics"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	*m = Measurement(v.plain)
	m.Metrics = v.Metrics
	return nil
}

type metrics map[string]float64

func (m *metrics) UnmarshalJSON(data []byte) error {
	var values map[string]*float64
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	if len(values) == 0 {
		return nil
	}
	*m = make(metrics, len(values))
	for name, v := range values {
		if v == nil {
			return fmt.Errorf("metric %q is null", clip(name))
		}
		(*m)[name] = *v
	}
	return nil
}

type point study.Point

func (p point) MarshalJSON() ([]byte, error) {
	names := make([]string, 0, len(p))
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := marshalValue(p[name])
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", name, err)
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func marshalValue(v any) ([]byte, error) {
	f, ok := v.(float64)
	if !ok {
		return json.Marshal(v)
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return []byte(s), nil
}

func (p *point) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return err
	}
	for name, v := range values {
		n, ok := v.(json.Number)
		if !ok {
			continue
		}
		value, err := parseValue(string(n))
		if err != nil {
			return fmt.Errorf("parameter %q: %w", clip(name), err)
		}
		values[name] = value
	}
	*p = values
	return nil
}

// parseValue reads a JSON number: an int64, or a float64 where it has a decimal
// point or an exponent, or does not fit an int64.
func parseValue(s string) (any, error) {
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("%s is out of range", clip(s))
	}
	return f, nil
}

// checkPoint holds a point to the types that study.Point allows.
func checkPoint(p study.Point) error {
	for name, v := range p {
		if name == "" {
			return fmt.Errorf("%w: a parameter without a name", ErrInvalid)
		}
		switch v := v.(type) {
		case string, bool, int64:
		case float64:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%w: parameter %q is %v, must be finite", ErrInvalid, clip(name), v)
			}
		default:
			return fmt.Errorf("%w: parameter %q is a %T, must be a string, boolean, integer or float",
				ErrInvalid, clip(name), v)
		}
	}
	return nil
}
