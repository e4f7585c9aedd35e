// Package export writes the trials of a study as a table: CSV, JSON lines or Parquet, each
// with the same columns.
package export

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// kind is the type of a column's values.
type kind int

const (
	text    kind = iota // string
	whole               // int64
	number              // float64
	boolean             // bool
	instant             // time.Time, in UTC
)

type column struct {
	name string
	kind kind
}

// Table is the trials of a study, a row each, in their order. A row is made when it is written, so a
// table takes no memory beside its trials.
type Table struct {
	columns []column
	spec    *study.Spec
	trials  view.Trials
	// metrics, labels and attributes are those that any trial has; placed and noted say that one has a
	// place or a note.
	metrics, labels, attributes []string
	placed, noted               bool
}

// fixed are the columns that each study has. Those of where trials ran, of limits, of its cost, objectives, metrics,
// parameters, labels, attributes and notes follow. A column "value:" with an objective's name has the value
// that counts. The metric of that name can be what was reported last.
var fixed = []column{
	{"trial", whole}, {"state", text}, {"value", number}, {"attempts", whole}, {"worker", text}, {"source", text}, {"staleness", whole},
	{"seconds", number}, {"created", instant}, {"started", instant}, {"ended", instant}, {"failure", text}, {"message", text},
}

// Of makes the table of a study's trials, which MUST NOT change while it is written.
func Of(spec *study.Spec, trials view.Trials) *Table {
	t := &Table{columns: slices.Clone(fixed), spec: spec, trials: trials}
	metrics, labels, attributes := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, trial := range view.Each(trials) {
		see(metrics, trial.Metrics)
		see(labels, trial.Labels)
		see(attributes, trial.Attributes)
		t.placed = t.placed || trial.Site != messaging.Site{}
		t.noted = t.noted || trial.Note != ""
	}
	t.metrics, t.labels, t.attributes = slices.Sorted(maps.Keys(metrics)), slices.Sorted(maps.Keys(labels)),
		slices.Sorted(maps.Keys(attributes))
	if t.placed {
		t.columns = append(t.columns, column{"job", text}, column{"node", text}, column{"devices", text})
	}
	if len(spec.Limits) > 0 {
		t.columns = append(t.columns, column{"exceeded", text})
	}
	if spec.Cost != nil {
		t.columns = append(t.columns, column{"cost", number})
	}
	for _, o := range spec.Objectives() {
		t.columns = append(t.columns, column{"value:" + o.Metric, number})
	}
	for _, m := range t.metrics {
		t.columns = append(t.columns, column{"metric:" + m, number})
	}
	for i := range spec.Parameters {
		t.columns = append(t.columns, column{"parameter:" + spec.Parameters[i].Name, kindOf(&spec.Parameters[i])})
	}
	for _, key := range t.labels {
		t.columns = append(t.columns, column{"label:" + key, text})
	}
	for _, key := range t.attributes {
		t.columns = append(t.columns, column{"attribute:" + key, text})
	}
	if t.noted {
		t.columns = append(t.columns, column{"note", text})
	}
	return t
}

// row returns a cell for each column: nil, or the Go type of the column's kind.
func (t *Table) row(trial *view.Trial) []any {
	row := describe(trial)
	if t.placed {
		row = append(row, filled(trial.Job), filled(trial.Node), filled(trial.Devices))
	}
	if len(t.spec.Limits) > 0 {
		marked := *trial
		marked.Mark(t.spec)
		row = append(row, filled(strings.Join(marked.Exceeded, ", ")))
	}
	if t.spec.Cost != nil {
		row = append(row, cost(trial))
	}
	if len(t.spec.Several) == 0 {
		row = append(row, row[2]) // its value
	}
	for k := range t.spec.Several {
		row = append(row, indexed(trial.Values, k))
	}
	for _, m := range t.metrics {
		row = append(row, cell(trial.Metrics, m))
	}
	for k := range t.spec.Parameters {
		row = append(row, typed(t.columns[len(row)].kind, cell(trial.Parameters, t.spec.Parameters[k].Name)))
	}
	for _, key := range t.labels {
		row = append(row, cell(trial.Labels, key))
	}
	for _, key := range t.attributes {
		row = append(row, asJSON(trial.Attributes, key))
	}
	if t.noted {
		row = append(row, filled(trial.Note))
	}
	return row
}

// cost returns what a trial has cost by what it has reported, nil if it has reported nothing.
func cost(t *view.Trial) any {
	if t.Cost == nil {
		return nil
	}
	return *t.Cost
}

// see notes the keys of a map.
func see[V any](seen map[string]bool, of map[string]V) {
	for key := range of {
		seen[key] = true
	}
}

// describe returns the cells of the fixed columns.
func describe(t *view.Trial) []any {
	var value, seconds any
	if t.Value != nil {
		value = *t.Value
	}
	if !t.Times.Started.IsZero() && !t.Times.Ended.IsZero() {
		seconds = view.Seconds(t.Times.Ended.Sub(t.Times.Started))
	}
	failure, message := "", ""
	if t.Failure != nil && t.State != study.TrialCompleted {
		failure, message = t.Failure.Reason, view.FailureLine(t.Failure)
	}
	if t.State == study.TrialPruned && t.Stopped != nil {
		message = t.Stopped.Reason
	}
	if t.Cancelled != "" {
		message = t.Cancelled
	}
	return []any{
		int64(t.Trial), string(t.State), value, int64(t.Attempts), filled(t.Worker), filled(string(t.Source)), int64(t.Staleness),
		seconds, moment(t.Times.Created), moment(t.Times.Started), moment(t.Times.Ended), filled(failure), filled(message),
	}
}

// filled returns a text, nil for an empty one.
func filled(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// moment returns a time in UTC, nil for none.
func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC()
}

// asJSON returns an attribute as text: a string as it is, any other value as JSON.
func asJSON(attributes map[string]any, key string) any {
	switch v := attributes[key].(type) {
	case nil:
		return nil
	case string:
		return v
	default:
		text, err := json.Marshal(v)
		if err != nil { // it came as JSON
			return nil
		}
		return string(text)
	}
}

// indexed returns a value of a list, nil if the list is shorter.
func indexed(values []float64, i int) any {
	if i < len(values) {
		return values[i]
	}
	return nil
}

func cell[V any](values map[string]V, name string) any {
	if v, ok := values[name]; ok {
		return v
	}
	return nil
}

// kindOf returns the kind of a parameter's column. If the values of a categorical are of
// several types, or one column of numbers cannot hold all of them, they are written as text.
func kindOf(p *study.Parameter) kind {
	switch p.Type {
	case study.Float:
		return number
	case study.Int:
		return whole
	case study.Bool:
		return boolean
	}
	kinds := map[kind]bool{}
	for _, v := range p.Listed() {
		switch v.(type) {
		case int64:
			kinds[whole] = true
		case float64:
			kinds[number] = true
		case bool:
			kinds[boolean] = true
		default:
			kinds[text] = true
		}
	}
	if kinds[whole] && kinds[number] && !slices.ContainsFunc(p.Listed(), inexact) {
		delete(kinds, whole)
	}
	if len(kinds) == 1 {
		for k := range kinds {
			return k
		}
	}
	return text
}

// inexact reports whether a value is a whole number that a float64 cannot hold.
func inexact(v any) bool {
	n, ok := v.(int64)
	return ok && (n > study.MaxExact || n < -study.MaxExact)
}

// typed returns a parameter's value as a column of the kind has it. A server's values
// cannot tell whole numbers from others.
func typed(k kind, v any) any {
	if v == nil {
		return nil
	}
	switch k {
	case whole:
		if f, ok := v.(float64); ok {
			return int64(f)
		}
	case number:
		if n, ok := v.(int64); ok {
			return float64(n)
		}
	case text:
		return study.Format(v)
	}
	return v
}
