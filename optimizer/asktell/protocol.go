package asktell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// request is a line of input; exactly one of Ask, Tell and Recommend is set.
type request struct {
	Ask       *int    `json:"ask"`
	Tell      *[]tell `json:"tell"`
	Recommend *bool   `json:"recommend"`
	// Running belongs to Ask. It says how long pending trials have run.
	Running []running `json:"running"`
}

// running is a trial whose evaluation has run for so many seconds.
type running struct {
	Trial   *int     `json:"trial"`
	Seconds *float64 `json:"seconds"`
}

// tell is the outcome of an evaluation, either of a trial that was asked for or of a
// point of the caller's own.
type tell struct {
	Trial      *int                `json:"trial"`
	Parameters map[string]any      `json:"parameters"`
	Metrics    map[string]*float64 `json:"metrics"`
	Failed     bool                `json:"failed"`
	Infeasible bool                `json:"infeasible"`
	// Seconds is how long the evaluation took; nil if that is not known.
	Seconds *float64 `json:"seconds"`
}

// answer is a line of output; exactly one field is set.
type answer struct {
	Suggestions *[]suggestion `json:"suggestions,omitempty"`
	Told        *int          `json:"told,omitempty"`
	// Recommended is written as null if it points to nil.
	Recommended **optimizer.Recommendation `json:"recommended,omitempty"`
	Error       string                     `json:"error,omitempty"`
}

type suggestion struct {
	Trial      int         `json:"trial"`
	Parameters study.Point `json:"parameters"`
	Why        why         `json:"why"`
}

type why struct {
	Source optimizer.Source `json:"source"`
	optimizer.Reasons
}

// parse reads a line, strictly: unknown fields and trailing text are errors.
func parse(line []byte) (request, error) {
	var r request
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(&r); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return r, fmt.Errorf("not a request: %s: %s is not accepted; want %s", wrong.Field, wrong.Value, accepted(wrong.Type))
		}
		return r, fmt.Errorf("not a request: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("not a request: text after the JSON object")
	}
	set := 0
	for _, given := range []bool{r.Ask != nil, r.Tell != nil, r.Recommend != nil} {
		if given {
			set++
		}
	}
	if set != 1 {
		return r, errors.New(`a request must have exactly one of "ask", "tell" and "recommend"`)
	}
	if r.Running != nil && r.Ask == nil {
		return r, errors.New(`"running" belongs to "ask"`)
	}
	return r, nil
}

// accepted describes what a field of a Go type accepts.
func accepted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int:
		return "a whole number such as 8"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string in quotes"
	case reflect.Slice:
		return "a list in brackets"
	case reflect.Pointer:
		return accepted(t.Elem())
	default:
		return "an object in braces"
	}
}

// observation checks t's outcome, and what it has cost; the caller sets Trial and Point.
func (t tell) observation(spec *study.Spec) (optimizer.Observation, error) {
	o, err := t.outcome(spec)
	if err != nil {
		return o, err
	}
	if s := t.Seconds; s != nil {
		if o.Seconds = *s; !(o.Seconds >= 0) || !study.Finite(o.Seconds) {
			return o, fmt.Errorf("seconds %v: want a number from 0 on", o.Seconds)
		}
	}
	if spec.Cost == nil {
		return o, nil
	}
	if cost := t.Metrics[spec.Cost.Metric]; cost != nil {
		if o.Cost = *cost; !(o.Cost >= 0) || !study.Finite(o.Cost) {
			return o, fmt.Errorf("metric %q is %v, and a cost (cost.metric) is a number from 0 on", spec.Cost.Metric, o.Cost)
		}
	}
	return o, nil
}

// outcome returns how the evaluation ended.
func (t tell) outcome(spec *study.Spec) (optimizer.Observation, error) {
	switch {
	case t.Failed && t.Infeasible || !t.Failed && !t.Infeasible && t.Metrics == nil:
		return optimizer.Observation{}, errors.New(`want exactly one of "metrics", "failed": true and "infeasible": true`)
	case t.Failed:
		return t.early(spec, optimizer.OutcomeFailed)
	case t.Infeasible:
		return t.early(spec, optimizer.OutcomeInfeasible)
	}
	var values study.Values
	for _, metric := range study.MetricNames(spec.Objectives()) {
		value, present := t.Metrics[metric]
		if !present {
			return optimizer.Observation{}, fmt.Errorf("metric %q is missing: got %s", metric, names(t.Metrics))
		}
		if value == nil {
			return optimizer.Observation{}, fmt.Errorf(
				`metric %q is null: want a finite number, or "infeasible": true if the evaluation diverged`, metric,
			)
		}
		values = append(values, *value)
	}
	limited := map[string]float64{}
	for _, metric := range spec.LimitMetrics() {
		value, present := t.Metrics[metric]
		if !present {
			return optimizer.Observation{}, fmt.Errorf("metric %q of a limit is missing: got %s", metric, names(t.Metrics))
		}
		if value != nil { // null is not within the limit
			limited[metric] = *value
		}
	}
	return optimizer.Observation{Outcome: optimizer.OutcomeCompleted, Values: values, Excess: spec.Excess(values, limited)}, nil
}

// early returns the observation of an evaluation that did not complete. Metrics may have values
// that were known before it ended.
func (t tell) early(spec *study.Spec, outcome optimizer.Outcome) (optimizer.Observation, error) {
	known, metrics := spec.EarlyMetrics(), map[string]float64{}
	for _, metric := range slices.Sorted(maps.Keys(t.Metrics)) {
		if spec.Cost != nil && metric == spec.Cost.Metric && !slices.Contains(known, metric) {
			continue
		}
		if !slices.Contains(known, metric) {
			return optimizer.Observation{}, fmt.Errorf(
				`metric %q of an evaluation that has not completed: want exactly one of `+
					`"metrics", "failed": true and "infeasible": true, or metrics of objectives and limits with early: true, or of the cost`,
				metric,
			)
		}
		if value := t.Metrics[metric]; value != nil {
			metrics[metric] = *value
		}
	}
	return optimizer.Observation{Outcome: outcome, Excess: spec.EarlyExcess(metrics), Early: spec.EarlyValues(metrics)}, nil
}

func names(metrics map[string]*float64) string {
	if len(metrics) == 0 {
		return "none"
	}
	quoted := make([]string, 0, len(metrics))
	for name := range metrics {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	sort.Strings(quoted)
	return strings.Join(quoted, ", ")
}
