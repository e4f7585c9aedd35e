package messaging

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/fantasia-hpo/fantasia/study"
)

// Reached is what the attempts of a trial that continue one another have reported of the metrics
// that count: those of the objectives and of the limits. It MUST NOT be changed, since copies share
// its maps.
type Reached struct {
	// Attempt is the number of the last attempt whose reports are in it.
	Attempt int `json:"attempt"`
	// Best has the values of the report that counts, if an objective takes its best one, and Step its step.
	Best map[string]Number `json:"best,omitempty"`
	Step int64             `json:"step,omitempty"`
	// Last has the newest value of each metric, and Steps the highest step.
	Last  map[string]Number `json:"last,omitempty"`
	Steps map[string]int64  `json:"steps,omitempty"`
}

// StepOf returns the highest step of a metric; false if it was not reported. Nil has reached nothing.
func (r *Reached) StepOf(metric string) (step int64, ok bool) {
	if r == nil {
		return 0, false
	}
	step, ok = r.Steps[metric]
	return step, ok
}

// validate checks the names. Nil has reached nothing.
func (r *Reached) validate() error {
	if r == nil {
		return nil
	}
	return cmp.Or(
		checkAtLeast("reached.attempt", r.Attempt, 1),
		checkMetrics(nil, slices.Collect(maps.Keys(r.Best))...),
		checkMetrics(nil, slices.Collect(maps.Keys(r.Last))...),
		checkMetrics(nil, slices.Collect(maps.Keys(r.Steps))...),
	)
}

// Number is a float64 whose JSON may be NaN or infinite, as a string.
type Number float64

// MarshalJSON writes a number, or a string if JSON has no such number.
func (n Number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if study.Finite(v) {
		return json.Marshal(v)
	}
	return json.Marshal(strconv.FormatFloat(v, 'g', -1, 64))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Number) UnmarshalJSON(data []byte) error {
	text := string(data)
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) {
		return fmt.Errorf("%q is not a number: %w", text, err)
	}
	*n = Number(v)
	return nil
}
