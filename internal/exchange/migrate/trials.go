package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// Evaluated is a trial that was evaluated elsewhere.
type Evaluated struct {
	// Place says where it was found, such as "line 7".
	Place   string
	Point   study.Point
	Values  study.Values       // one for each objective; finite
	Metrics map[string]float64 // without the objectives; NaN where the metric of a limit is not known
	// Seconds and Cost are how long it took and what it has cost, 0 if that is not known. Only trials to learn from have them.
	Seconds, Cost float64
}

// Skipped is a trial that cannot be imported, and why.
type Skipped struct {
	Place string `json:"place"`
	Why   string `json:"why"`
}

// utf8 returns the text of a file that may begin with a byte-order mark, which Excel writes.
// If the mark is that of UTF-16, the text is converted.
func utf8(r io.Reader) io.Reader {
	return transform.NewReader(r, unicode.BOMOverride(transform.Nop))
}

// JSON reads trials from objects, one after another or in a list. An object has
// "parameters" (or "params" or "config"), "value" (or "values", or the metrics by their names), and
// may have "metrics" and "state", as `fantasia trial list -o json` prints it; parameters and
// metrics may also be fields of the object itself, named as in the header of a CSV file. The
// error wraps ErrSource.
func JSON(r io.Reader, spec *study.Spec) ([]Evaluated, []Skipped, error) {
	c, err := newCollector(spec)
	if err != nil {
		return nil, nil, err
	}
	return c.json(r)
}

// json reads the trials of JSON.
func (c *collector) json(r io.Reader) ([]Evaluated, []Skipped, error) {
	in := newElements(utf8(r))
	for number := 0; ; number++ {
		one, err := in.next()
		if errors.Is(err, io.EOF) {
			return c.finish()
		} else if err != nil {
			hint := ""
			if text := err.Error(); strings.Contains(text, "'N'") || strings.Contains(text, "'I'") {
				hint = ": JSON has no NaN and no Infinity, want null"
			}
			return nil, nil, fmt.Errorf("%w: after object %d: %w%s", ErrSource, number, err, hint)
		}
		fields, ok := one.(map[string]any)
		if !ok {
			return nil, nil, fmt.Errorf("%w: after object %d: want an object for each trial, got %s", ErrSource, number, shown(one))
		}
		c.addObject(fmt.Sprintf("object %d", number+1), fields)
		if err := c.full(); err != nil {
			return nil, nil, err
		}
	}
}

// addObject adds the trial with the given fields.
func (c *collector) addObject(place string, fields map[string]any) {
	// In order, so that of two fields for one thing the same one counts each time.
	names := slices.Sorted(maps.Keys(fields))
	columns, err := c.columns(names, func(name string) fieldKind { return kindOf(fields[name]) })
	if err != nil {
		c.skip(place, "%v", err)
		return
	}
	c.add(place, columns, each.Of(names, func(name string) any { return fields[name] }))
}

// OptunaTrials reads the completed trials of a study in a storage of Optuna, which source names
// as for the function Optuna, with the same errors.
func OptunaTrials(ctx context.Context, source string, o OptunaOptions, spec *study.Spec) ([]Evaluated, []Skipped, error) {
	stored, err := readOptuna(ctx, source, o)
	if err != nil {
		return nil, nil, err
	}
	return stored.evaluated(spec)
}

// evaluated returns the completed trials that belong to a study.
func (s *optunaStudy) evaluated(spec *study.Spec) ([]Evaluated, []Skipped, error) {
	if theirs, ours := directions(s.objectives), directions(spec.Objectives()); theirs != ours {
		return nil, nil, fmt.Errorf("%w: Optuna's study is to %s, this one to %s", ErrSource, theirs, ours)
	}
	c, err := newCollector(spec)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range s.trials {
		place := fmt.Sprintf("trial %d", t.number)
		if problem := s.problem(t); problem != "" {
			c.skip(place, "%s", problem)
			continue
		}
		c.check(place, t.point(), t.values, s.withConstraints(t, t.metrics()))
	}
	return c.trials, c.skipped, nil
}

// directions returns the directions of objectives as text.
func directions(objectives []study.Objective) string {
	return each.Join(objectives, ", ", func(o study.Objective) string { return string(o.Direction) })
}

// collector collects the trials that belong to a space.
type collector struct {
	space   *space.Space
	metrics []string // of the objectives
	byName  map[string]*study.Parameter
	trials  []Evaluated
	skipped []Skipped

	same   []sameness
	other  string   // the metric that the file's values are of, if it is none of the objectives
	placed []placed // values that only their place gives to an objective
	signs  decimals // how the file writes decimals
	unread unread   // columns that nobody reads
	stated bool     // a column of states was read

	partial bool // trials of other spaces are read, too: what the study does not have is left out of them
	leveled bool // the study has a fidelity: how long a trial of a file took is that of an unknown level
}

func newCollector(spec *study.Spec) (*collector, error) {
	compiled, err := celspace.New(spec.Parameters, spec.Constraints, nil)
	if err != nil {
		return nil, fmt.Errorf("compile the study's space: %w", err)
	}
	c := &collector{space: compiled, metrics: study.MetricNames(spec.Objectives()), byName: map[string]*study.Parameter{}, unread: unread{},
		signs: decimals{columns: map[string]*shownSigns{}}}
	c.same = make([]sameness, len(c.metrics))
	for i := range spec.Parameters {
		c.byName[spec.Parameters[i].Name] = &spec.Parameters[i]
	}
	return c, nil
}

func (c *collector) skip(place, format string, args ...any) {
	c.skipped = append(c.skipped, Skipped{place, fmt.Sprintf(format, args...)})
}

// add adds the trial whose values are those of a row.
func (c *collector) add(place string, columns []column, row []any) {
	given := map[string]any{}
	metrics := map[string]float64{}
	var took, cost float64
	found := make([]valueFrom, len(c.metrics))
	said := objectivesOf(columns, row)
	for i, col := range columns {
		field := row[i]
		if field == nil {
			continue
		}
		switch col.kind {
		case ignored:
			c.unread.see(place, col.name, field)
		case ofState:
			c.stated = true
			if state := stateText(field); !completed(col.name, state) {
				c.skip(place, "its %s is %s: only completed trials have a value", clipped(strings.ToLower(col.name)), clipped(state))
				return
			}
		case ofParameter:
			c.signs.seeParameter(place, col.name, col.parameter, field)
			given[col.parameter.Name] = field
		case ofParameters:
			maps.Copy(given, field.(map[string]any))
		case ofValue, ofValues:
			c.signs.see(place, col.name, field)
			c.addValues(found, &col, field, said)
		case ofMetric:
			c.signs.see(place, col.name, field)
			c.setMetric(metrics, col.metric, field)
		case ofSeconds:
			took = c.effort(place, &col, field)
		case ofCost:
			cost = c.effort(place, &col, field)
		case ofTimes:
			took = between(field)
		case ofMetrics:
			all, _ := field.(map[string]any)
			for name, v := range all {
				c.setMetric(metrics, name, v)
			}
			for i, metric := range c.metrics {
				if v, ok := all[metric]; ok {
					c.same[i].named = true
					found[i].consider(v, col.name, byName)
				}
			}
		}
	}
	values := make(study.Values, len(found))
	for i, one := range found {
		v, err := c.number(one.value)
		switch {
		case one.value == nil:
			c.skip(place, "it has no value: want %s", c.names(i))
			return
		case err != nil:
			c.skip(place, "%s is %s: %v", one.from, shown(one.value), err)
			return
		}
		values[i] = v
		c.compare(i, &one)
	}
	before := len(c.trials)
	if c.check(place, given, values, metrics); len(c.trials) == before {
		return
	}
	c.trials[before].Seconds, c.trials[before].Cost = took, cost
	for i, one := range found {
		if one.says == byPlace {
			c.placed = append(c.placed, placed{before, i})
		}
	}
}

// names says by which names a column has the values of an objective.
func (c *collector) names(objective int) string {
	if len(c.metrics) == 1 {
		return "value or " + c.metrics[0]
	}
	return c.metrics[objective]
}

// setMetric keeps a metric other than the objectives if it is a finite number. A study has no
// other metrics.
func (c *collector) setMetric(metrics map[string]float64, name string, field any) {
	if v, err := c.number(field); err == nil && !slices.Contains(c.metrics, name) {
		metrics[name] = v
	}
}

// check adds a trial if its point belongs to the space.
func (c *collector) check(place string, given map[string]any, values study.Values, metrics map[string]float64) {
	if c.partial {
		c.keepKnown(place, given, values)
		return
	}
	point := make(map[string]any, len(given))
	var doubtful []string // their values can also mean that there is none
	for _, name := range slices.Sorted(maps.Keys(given)) {
		p, v := c.byName[name], given[name]
		if p == nil {
			c.skip(place, "the study has no parameter %s", clipped(name))
			return
		}
		typed, err := c.typed(p, v)
		switch {
		case err == nil:
			point[name] = typed
			if blank(v) {
				doubtful = append(doubtful, name)
			}
		case !blank(v):
			c.skip(place, "parameter %s is %s: want %s", name, shown(v), p.Accepts())
			return
		}
	}
	inactive := slices.DeleteFunc(doubtful, func(name string) bool { return c.space.Active(point, name) })
	for _, name := range inactive {
		delete(point, name)
	}
	known, err := c.space.Normalize(point)
	if err == nil {
		err = c.space.Check(known)
	}
	if err != nil {
		c.skip(place, "%v", err)
		return
	}
	c.trials = append(c.trials, Evaluated{Place: place, Point: known, Values: values, Metrics: metrics})
}
