package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// column is a column of a table, or a field of an object, and what it is about.
type column struct {
	name      string
	kind      columnKind
	parameter *study.Parameter // of ofParameter
	metric    string           // of ofMetric
	objective int              // of ofValue
}

// first reports whether what a column says comes before what others say of the objective: the
// value that counts, not what was reported last.
func (c *column) first() bool {
	return c.name == "value" || strings.HasPrefix(c.name, "value:") || strings.HasPrefix(c.name, "values_")
}

type columnKind int

const (
	ignored columnKind = iota
	ofState
	ofValue
	ofParameter
	ofMetric
	// Fields of JSON only:
	ofValues
	ofParameters
	ofMetrics
)

// parameterPrefixes are what columns of parameters may begin with: those of trials.csv and of
// Optuna's data frames. parameterGroups are fields that hold all parameters.
var (
	parameterPrefixes = []string{"parameter:", "params_"}
	parameterGroups   = []string{"parameters", "params", "config"}
)

// columns says what each column of a table is about. isObject reports whether a field is an
// object; a table has none.
//
// Parameters can have the names of other columns. If a parameter has a column with a prefix,
// or is in a group, its bare name is not the parameter but, say, the worker. Otherwise the
// bare name is the parameter, unless it is the only column that can be the objective.
func (c *collector) columns(names []string, isObject func(name string) bool) ([]column, error) {
	columns := make([]column, len(names))
	apart, grouped := map[*study.Parameter]bool{}, false
	for i, name := range names {
		columns[i] = column{name: name, metric: strings.TrimPrefix(name, "metric:")}
		col := &columns[i]
		switch {
		case isObject(name) && slices.Contains(parameterGroups, name): // no parameter is an object
			col.kind, grouped = ofParameters, true
		case isObject(name) && name == "metrics":
			col.kind = ofMetrics
		case strings.HasPrefix(name, "metric:") && slices.Contains(c.metrics, col.metric):
			col.kind, col.objective = ofValue, slices.Index(c.metrics, col.metric)
		case col.metric != name:
			col.kind = ofMetric
		default:
			if col.parameter = c.prefixed(name); col.parameter != nil {
				col.kind, apart[col.parameter] = ofParameter, true
			}
		}
	}
	objective := func(col column) bool {
		_, ok := c.objective(col.name)
		return col.kind == ofValue || col.kind == ignored && ok
	}
	objectives := make([]int, len(c.metrics)) // how many columns can be each
	for i := range columns {
		if col := &columns[i]; objective(*col) {
			if col.kind == ignored {
				col.objective, _ = c.objective(col.name)
			}
			objectives[col.objective]++
		}
	}
	for i := range columns {
		col := &columns[i]
		p := c.byName[col.name]
		bare := p != nil && !grouped && !apart[p]
		switch {
		case col.name == "values" && !bare: // also if the metric has that name
			col.kind = ofValues
		case col.kind != ignored:
		case objective(*col) && bare && objectives[col.objective] > 1:
			col.kind, col.parameter = ofParameter, p
			objectives[col.objective]--
		case objective(*col):
			col.kind = ofValue
		case bare:
			col.kind, col.parameter = ofParameter, p
		case strings.EqualFold(col.name, "state"):
			col.kind = ofState
		}
	}
	return columns, unambiguous(columns)
}

// objective returns the objective whose values a column of that name has. Of several, these are the
// names in trials.csv and in data frames of Optuna and of the Python client.
func (c *collector) objective(name string) (int, bool) {
	for i, metric := range c.metrics {
		names := []string{metric, "value"}
		if len(c.metrics) > 1 {
			names = []string{metric, "value:" + metric, "values_" + metric, fmt.Sprintf("values_%d", i)}
		}
		if slices.Contains(names, name) {
			return i, true
		}
	}
	return 0, false
}

// prefixed returns the parameter that a name with a prefix is about; nil if there is none.
func (c *collector) prefixed(name string) *study.Parameter {
	for _, prefix := range parameterPrefixes {
		if bare, ok := strings.CutPrefix(name, prefix); ok && c.byName[bare] != nil {
			return c.byName[bare]
		}
	}
	return nil
}

// unambiguous returns an error if two columns are one parameter, or have one name that counts.
func unambiguous(columns []column) error {
	parameters, names := map[*study.Parameter]string{}, map[string]bool{}
	for _, col := range columns {
		if col.kind == ignored {
			continue
		}
		if other, ok := parameters[col.parameter]; ok && col.kind == ofParameter {
			return fmt.Errorf("the columns %s and %s are both the parameter %s: want one", other, col.name, col.parameter.Name)
		}
		if names[col.name] {
			return fmt.Errorf("two columns are named %s: want one", col.name)
		}
		names[col.name] = true
		if col.kind == ofParameter {
			parameters[col.parameter] = col.name
		}
	}
	return nil
}

// header says what each column of a table is about, also with the error that refuses a table
// that cannot have a single trial.
func (c *collector) header(names []string) ([]column, error) {
	columns, err := c.columns(names, func(string) bool { return false })
	if err != nil {
		return columns, fmt.Errorf("%w: %w", ErrSource, err)
	}
	seen := map[*study.Parameter]bool{}
	valued := make([]bool, len(c.metrics))
	for _, col := range columns {
		seen[col.parameter] = true
		if col.kind == ofValue {
			valued[col.objective] = true
		}
	}
	all := clipped(strings.Join(names, ", "))
	if i := slices.Index(valued, false); i >= 0 {
		return columns, fmt.Errorf("%w: no column is the objective: want one named %s, got %s", ErrSource, c.names(i), all)
	}
	for _, p := range c.space.Parameters() {
		if len(p.When) == 0 && p.Type != study.Fixed && !seen[c.byName[p.Name]] {
			return columns, fmt.Errorf("%w: no column is the parameter %s, got %s", ErrSource, p.Name, all)
		}
	}
	return columns, nil
}
