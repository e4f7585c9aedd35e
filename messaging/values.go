package messaging

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/study"
)

// UnmarshalJSON decodes a result. A metric that is null is an error: read as a plain map
// it would silently become 0.
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

// UnmarshalJSON decodes a measurement with the same checks as a result.
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

// checkPoint checks that a point has only the types that study.Point allows.
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
