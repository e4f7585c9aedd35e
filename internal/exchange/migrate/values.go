package migrate

import (
	"cmp"
	"fmt"
	"slices"
)

// claim is how clearly a column or a field says that it has the values of an objective. If several
// do, the greatest claim counts.
type claim int

const (
	unsaid  claim = iota
	byPlace       // "value", or a place in a list: it can be the value of another metric
	byName        // the metric's name: it can be what was reported last
	asValue       // the value that counts, of that metric
)

// sameness is what a file shows of whether the values that are an objective's by their place are those of the
// columns that are named after it.
type sameness struct {
	named          bool // there is such a column
	agrees, differ bool // a trial has both, and they are the same, or are not
}

// compare notes whether the value by place of a trial is that of its objective's name.
func (c *collector) compare(objective int, found *valueFrom) {
	if found.place == nil || found.says != byName {
		return
	}
	named, _ := c.number(found.value)
	place, err := c.number(found.place)
	same := &c.same[objective]
	same.agrees = same.agrees || err == nil && named == place
	same.differ = same.differ || err != nil || named != place
}

// placed is an objective of a trial whose value is known by its place only.
type placed struct{ trial, objective int }

// objectivesOf returns the metrics that a row says its values are of; nil if it does not say so.
func objectivesOf(columns []column, row []any) []string {
	var said []string
	for i, col := range columns {
		if all, _ := row[i].([]any); col.kind == ofObjectives {
			for _, name := range all {
				said = append(said, fmt.Sprint(name))
			}
		}
	}
	return said
}

// addValues takes the values of a column or a field. said are the metrics that the row says they are of.
func (c *collector) addValues(found []valueFrom, col *column, field any, said []string) {
	values := []any{field}
	if col.kind == ofValues {
		values, _ = field.([]any)
	} else if col.says != byPlace {
		found[col.objective].consider(field, col.name, col.says)
		return
	}
	switch {
	case said != nil:
		for k := range min(len(values), len(said)) {
			if i := slices.Index(c.metrics, said[k]); i >= 0 {
				found[i].consider(values[k], col.name, asValue)
			}
		}
	case col.kind == ofValue:
		found[col.objective].consider(field, col.name, byPlace)
	case len(values) == len(found): // otherwise they are the values of other objectives
		for i, v := range values {
			found[i].consider(v, col.name, byPlace)
		}
	}
}

// valueFrom is the value of an objective, the column that it is from, and how clearly that is known.
type valueFrom struct {
	value any
	from  string
	says  claim
	place any // the value whose place says so, if there is one
}

// consider takes a value if it is more clearly that of the objective.
func (f *valueFrom) consider(value any, from string, says claim) {
	if value == nil || value == "" {
		return
	}
	if says > f.says {
		f.value, f.from, f.says = value, from, says
	}
	if says == byPlace {
		f.place = value
	}
}

// finish returns what was read, or what is wrong with the file as a whole.
func (c *collector) finish() ([]Evaluated, []Skipped, error) {
	if err := cmp.Or(c.signs.check(), c.unread.check(c.stated)); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	for _, p := range c.placed {
		same := c.same[p.objective]
		if t := &c.trials[p.trial]; same.named && (same.differ || !same.agrees) && t.Values != nil {
			c.skip(t.Place, "it has no %s, as other trials of the file have: its value can be that of another metric", c.metrics[p.objective])
			t.Values = nil
		}
	}
	return slices.DeleteFunc(c.trials, func(t Evaluated) bool { return t.Values == nil }), c.skipped, nil
}
