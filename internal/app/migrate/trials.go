package migrate

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// Evaluated is a trial that was evaluated elsewhere.
type Evaluated struct {
	// Place says where it was found, such as "line 7".
	Place   string
	Point   study.Point
	Value   float64
	Metrics map[string]float64 // without the objective
}

// Skipped is a trial that cannot be imported, and why.
type Skipped struct{ Place, Why string }

// trialPrefixes are what columns of parameters may begin with: those of trials.csv and of
// Optuna's data frames.
var trialPrefixes = []string{"parameter:", "params_"}

// CSV reads trials from a table with a header. A column is a parameter's name (also as
// "parameter:NAME" or "params_NAME"), "value" or the metric's name, "metric:NAME", or
// "state"; others are ignored. An empty cell is no value. So trials.csv of a run and
// Optuna's data frames can be read. The error wraps ErrSource.
func CSV(r io.Reader, spec *study.Spec) ([]Evaluated, []Skipped, error) {
	in := csv.NewReader(bufio.NewReader(r))
	in.TrimLeadingSpace = true
	header, err := in.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: read the header: %w", ErrSource, err)
	}
	c, err := newCollector(spec)
	if err != nil {
		return nil, nil, err
	}
	if err := c.checkHeader(header); err != nil {
		return nil, nil, err
	}
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			return c.trials, c.skipped, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrSource, err)
		}
		line, _ := in.FieldPos(0)
		fields := make(map[string]any, len(cells))
		for i, cell := range cells {
			fields[header[i]] = nil
			if cell != "" {
				fields[header[i]] = cell
			}
		}
		c.add(fmt.Sprintf("line %d", line), fields)
	}
}

// JSON reads trials from objects, one after another or in a list. An object has
// "parameters", "value" (or "values", or the metric by its name), and may have "metrics" and
// "state", as `fantasia trial list -o json` prints it; parameters and metric may also be
// fields of the object itself. The error wraps ErrSource.
func JSON(r io.Reader, spec *study.Spec) ([]Evaluated, []Skipped, error) {
	decoder := json.NewDecoder(bufio.NewReader(r))
	decoder.UseNumber()
	c, err := newCollector(spec)
	if err != nil {
		return nil, nil, err
	}
	for number := 0; ; {
		var one any
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return c.trials, c.skipped, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("%w: after object %d: %w", ErrSource, number, err)
		}
		list, ok := one.([]any)
		if !ok {
			list = []any{one}
		}
		for _, e := range list {
			fields, ok := e.(map[string]any)
			if !ok {
				return nil, nil, fmt.Errorf("%w: after object %d: want an object for each trial, got %v", ErrSource, number, e)
			}
			number++
			c.add(fmt.Sprintf("object %d", number), fields)
		}
	}
}

// OptunaTrials reads the completed trials of a study in a storage of Optuna, which source names
// as for the function Optuna. name may be empty if there is only one study. The error wraps
// ErrSource unless a server cannot be reached.
func OptunaTrials(ctx context.Context, source, name string, spec *study.Spec) (_ []Evaluated, _ []Skipped, err error) {
	db, err := openStorage(ctx, source)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	id, _, err := chooseStudy(ctx, db, name)
	if err != nil {
		return nil, nil, err
	}
	way, err := direction(ctx, db, id)
	if err != nil {
		return nil, nil, err
	}
	if way != spec.Objective.Direction {
		return nil, nil, fmt.Errorf("%w: Optuna's study is to %s, this one to %s", ErrSource, way, spec.Objective.Direction)
	}
	trials, err := readTrials(ctx, db, id)
	if err != nil {
		return nil, nil, err
	}
	c, err := newCollector(spec)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range trials {
		place := fmt.Sprintf("trial %d", t.number)
		if t.value == nil {
			c.skip(place, "it has not completed with a value")
			continue
		}
		c.check(place, t.point(), *t.value, nil)
	}
	return c.trials, c.skipped, nil
}

// collector collects the trials that belong to a space.
type collector struct {
	spec    *study.Spec
	space   *space.Space
	metric  string
	byName  map[string]*study.Parameter
	trials  []Evaluated
	skipped []Skipped
}

func newCollector(spec *study.Spec) (*collector, error) {
	compiled, err := space.New(spec.Parameters, spec.Constraints, nil)
	if err != nil {
		return nil, fmt.Errorf("compile the study's space: %w", err)
	}
	c := &collector{spec: spec, space: compiled, metric: spec.Objective.Metric, byName: map[string]*study.Parameter{}}
	for i := range spec.Parameters {
		c.byName[spec.Parameters[i].Name] = &spec.Parameters[i]
	}
	return c, nil
}

func (c *collector) skip(place, format string, args ...any) {
	c.skipped = append(c.skipped, Skipped{place, fmt.Sprintf(format, args...)})
}

// parameterOf returns the parameter that a field is about; nil if it is about none.
func (c *collector) parameterOf(field string) *study.Parameter {
	for _, prefix := range trialPrefixes {
		if name, ok := strings.CutPrefix(field, prefix); ok && c.byName[name] != nil {
			return c.byName[name]
		}
	}
	return c.byName[field]
}

// apart reports whether a parameter has a place of its own in the fields, with a prefix or
// among "parameters". A field with its bare name is then something else, such as the worker.
func apart(fields map[string]any, parameter string) bool {
	_, found := fields["parameters"].(map[string]any)
	for _, prefix := range trialPrefixes {
		_, prefixed := fields[prefix+parameter]
		found = found || prefixed
	}
	return found
}

// isValue reports whether a field is the objective's value.
func (c *collector) isValue(field string) bool {
	return field == "value" || field == c.metric || field == "metric:"+c.metric
}

// checkHeader refuses a table that cannot have a single trial.
func (c *collector) checkHeader(header []string) error {
	if !slices.ContainsFunc(header, c.isValue) {
		return fmt.Errorf("%w: no column is the objective: want one named value or %s, got %s", ErrSource, c.metric, strings.Join(header, ", "))
	}
	for _, p := range c.spec.Parameters {
		if len(p.When) == 0 && p.Type != study.Fixed && !slices.ContainsFunc(header, func(h string) bool { return c.parameterOf(h) == c.byName[p.Name] }) {
			return fmt.Errorf("%w: no column is the parameter %s, got %s", ErrSource, p.Name, strings.Join(header, ", "))
		}
	}
	return nil
}

// add adds the trial with the given fields.
func (c *collector) add(place string, fields map[string]any) {
	if state, ok := fields["state"].(string); ok {
		if s := strings.ToLower(strings.TrimPrefix(state, "TRIAL_STATE_")); s != "completed" && s != "complete" {
			c.skip(place, "its state is %s: only completed trials have a value", state)
			return
		}
	}
	point, metrics := map[string]any{}, map[string]float64{}
	var value any
	if values, ok := fields["values"].([]any); ok && len(values) > 0 {
		value = values[0]
	}
	// In order, so that of two fields for one thing the same one counts each time.
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field := fields[name]
		switch p := c.parameterOf(name); {
		case field == nil:
		case name == "parameters":
			if given, ok := field.(map[string]any); ok {
				maps.Copy(point, given)
			}
		case name == "metrics":
			given, _ := field.(map[string]any)
			for metric, v := range given {
				if v, err := numeric(v); err == nil && metric != c.metric {
					metrics[metric] = v
				} else if err == nil && value == nil {
					value = given[metric]
				}
			}
		case c.isValue(name):
			value = field
		case p != nil && (name != p.Name || !apart(fields, name)):
			point[p.Name] = field
		case strings.HasPrefix(name, "metric:"):
			if v, err := numeric(field); err == nil {
				metrics[strings.TrimPrefix(name, "metric:")] = v
			}
		}
	}
	if value == nil {
		c.skip(place, "it has no value: want value or %s", c.metric)
		return
	}
	v, err := numeric(value)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		c.skip(place, "its value is %v: want a finite number", value)
		return
	}
	c.check(place, point, v, metrics)
}

// check adds a trial if its point belongs to the space.
func (c *collector) check(place string, given map[string]any, value float64, metrics map[string]float64) {
	point := make(map[string]any, len(given))
	for name, v := range given {
		p := c.byName[name]
		if p == nil {
			c.skip(place, "the study has no parameter %s", name)
			return
		}
		typed, err := typedValue(p, v)
		if err != nil {
			c.skip(place, "%s is %v: %v", name, v, err)
			return
		}
		point[name] = typed
	}
	known, err := c.space.Normalize(point)
	if err == nil {
		err = c.space.Check(known)
	}
	if err != nil {
		c.skip(place, "%v", err)
		return
	}
	c.trials = append(c.trials, Evaluated{Place: place, Point: known, Value: value, Metrics: metrics})
}

// typedValue returns a value that was read from text or JSON as the parameter has it.
func typedValue(p *study.Parameter, v any) (any, error) {
	switch p.Type {
	case study.Float:
		return numeric(v)
	case study.Int:
		n, err := numeric(v)
		if err == nil && n != math.Trunc(n) {
			err = errors.New("want a whole number")
		}
		return int64(n), err
	case study.Bool:
		if b, ok := v.(bool); ok {
			return b, nil
		}
		b, err := strconv.ParseBool(strings.ToLower(fmt.Sprint(v)))
		if err != nil {
			return nil, errors.New("want true or false")
		}
		return b, nil
	}
	choices := p.Listed()
	text := fmt.Sprint(v)
	for _, choice := range choices {
		if study.Format(choice) == text {
			return choice, nil
		}
		if want, err := numeric(choice); err == nil { // 1 and 1.0 are the same choice
			if got, err := numeric(v); err == nil && got == want {
				return choice, nil
			}
		}
	}
	return nil, fmt.Errorf("want one of %v", choices)
}

// numeric returns a number that was read from text or JSON.
func numeric(v any) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	case json.Number:
		return v.Float64()
	case string:
		if n, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return n, nil
		}
	}
	return 0, errors.New("want a number")
}
