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
	says      claim            // of ofValue
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
	ofObjectives
	ofParameters
	ofMetrics
	ofTimes
	// Of trials to learn from only:
	ofSeconds
	ofCost
)

// What columns of parameters and of metrics may begin with: those of trials.csv and of the data frames of
// Optuna, MLflow and Ray Tune. parameterGroups are fields that hold all parameters.
var (
	parameterPrefixes = []string{"parameter:", "params_", "params.", "config/"}
	metricPrefixes    = []string{"metric:", "metrics."}
	parameterGroups   = []string{"parameters", "params", "config"}
)

// columns says what each column of a table is about. isA reports of which kind a field is; the cells of
// a table are of none.
//
// Parameters can have the names of other columns. If a parameter has a column with a prefix,
// or is in a group, its bare name is not the parameter but, say, the worker. Otherwise the
// bare name is the parameter, unless it is the only column that can be the objective.
func (c *collector) columns(names []string, isA func(name string) fieldKind) ([]column, error) {
	columns := make([]column, len(names))
	apart, grouped := map[*study.Parameter]bool{}, false
	for i, name := range names {
		columns[i] = column{name: name}
		col := &columns[i]
		switch kind := isA(name); {
		case kind == anObject && slices.Contains(parameterGroups, name): // no parameter is an object
			col.kind, grouped = ofParameters, true
		case kind == anObject && name == "metrics":
			col.kind = ofMetrics
		case kind == aList && name == "objectives":
			col.kind = ofObjectives
		default:
			if col.parameter = c.prefixed(name); col.parameter != nil {
				col.kind, apart[col.parameter] = ofParameter, true
			} else if col.metric = metricOf(name); col.metric != "" && !slices.Contains(c.metrics, col.metric) {
				col.kind = ofMetric
			}
		}
	}
	objectives := make([]int, len(c.metrics)) // how many columns can be each
	for i := range columns {
		if col := &columns[i]; col.kind == ignored {
			if col.objective, col.says = c.objective(col.name); col.says != unsaid {
				objectives[col.objective]++
			}
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
		case col.says != unsaid && bare && objectives[col.objective] > 1:
			col.kind, col.parameter = ofParameter, p
			objectives[col.objective]--
		case col.says != unsaid:
			col.kind = ofValue
		case bare:
			col.kind, col.parameter = ofParameter, p
		case isState(col.name):
			col.kind = ofState
		case c.partial && !c.leveled:
			col.kind = effortKind(col.name, isA(col.name))
		}
	}
	c.observeNames(columns)
	return columns, unambiguous(columns)
}

// fieldKind tells the fields of JSON apart, as far as it matters for what they are about.
type fieldKind int

const (
	aCell fieldKind = iota
	anObject
	aList
)

// kindOf returns the kind of a field.
func kindOf(v any) fieldKind {
	switch v.(type) {
	case map[string]any:
		return anObject
	case []any:
		return aList
	default:
		return aCell
	}
}

// observeNames notes which objectives have a column that is named after them. Columns that can be an objective
// by their place are ignored if the file says that its values are of another metric.
func (c *collector) observeNames(columns []column) {
	other := ""
	for i := range columns {
		col := &columns[i]
		if metric, ok := strings.CutPrefix(col.name, "value:"); ok && col.kind == ignored {
			other = metric
		}
		if col.kind == ofValue && col.says > byPlace {
			c.same[col.objective].named = true
		}
	}
	for i := range columns {
		if col := &columns[i]; other != "" && col.kind == ofValue && col.says == byPlace {
			col.kind, c.other = ignored, other
		}
	}
}

// metricOf returns the metric that a name with a prefix is about; "" without one.
func metricOf(name string) string {
	for _, prefix := range metricPrefixes {
		if metric, ok := strings.CutPrefix(name, prefix); ok {
			return metric
		}
	}
	return ""
}

// objective returns the objective whose values a column of that name has, and how clearly its name says
// so. These are the names in trials.csv and in the data frames of others and of the Python client.
func (c *collector) objective(name string) (int, claim) {
	place := func(i int) string {
		if len(c.metrics) == 1 {
			return "value"
		}
		return fmt.Sprintf("values_%d", i)
	}
	for i, metric := range c.metrics {
		switch {
		case name == "value:"+metric || name == "values_"+metric, name == metric && name == place(i):
			return i, asValue
		case name == metric || metricOf(name) == metric:
			return i, byName
		case name == place(i):
			return i, byPlace
		}
	}
	return 0, unsaid
}

// ofOther says that the file's values are not those of an objective.
func (c *collector) ofOther(objective int) string {
	metric := c.metrics[objective]
	return fmt.Sprintf("the file's value is that of %s, not of %s: want a column named %[2]s", clipped(c.other), metric)
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
	columns, err := c.columns(names, func(string) fieldKind { return aCell })
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
	if i := slices.Index(valued, false); i >= 0 && c.other != "" {
		return columns, fmt.Errorf("%w: no column is the objective: %s, got %s", ErrSource, c.ofOther(i), all)
	} else if i >= 0 {
		return columns, fmt.Errorf("%w: no column is the objective: want one named %s, got %s", ErrSource, c.names(i), all)
	}
	if c.partial {
		if !slices.ContainsFunc(columns, func(col column) bool { return col.kind == ofParameter }) {
			return columns, fmt.Errorf("%w: no column is a parameter of the study: want one named %s, got %s", ErrSource, c.parameterNames(), all)
		}
		return columns, nil
	}
	for _, p := range c.space.Parameters() {
		if len(p.When) == 0 && p.Type != study.Fixed && !seen[c.byName[p.Name]] {
			return columns, fmt.Errorf("%w: no column is the parameter %s, got %s", ErrSource, p.Name, all)
		}
	}
	return columns, nil
}
