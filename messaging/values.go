package messaging

import (
	"encoding/json"
	"fmt"

	"github.com/fantasia-hpo/fantasia/study"
)

// Metrics are values by metric.
type Metrics map[string]float64

// UnmarshalJSON decodes metrics. A null is an error: a plain map would silently read it as 0.
func (m *Metrics) UnmarshalJSON(data []byte) error {
	var values map[string]*float64
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	if len(values) == 0 {
		return nil
	}
	*m = make(Metrics, len(values))
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
			if !study.Finite(v) {
				return fmt.Errorf("%w: parameter %q is %v, must be finite", ErrInvalid, clip(name), v)
			}
		default:
			return fmt.Errorf("%w: parameter %q is a %T, must be a string, boolean, integer or float",
				ErrInvalid, clip(name), v)
		}
	}
	return nil
}
