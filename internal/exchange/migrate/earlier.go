package migrate

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/study"
)

// Earlier reads the trials of another study from which one can learn. form is "csv", "json" or "parquet", with
// what the functions of these names read. The spaces may differ: parameters that the study does not have, or
// that are numbers in one of both only, are left out, and numbers may lie outside of their range. A trial is
// skipped if it has not completed, or where it would lie in the study's space is not known. The error wraps
// ErrSource if no trial is left, too.
func Earlier(form string, r io.Reader, spec *study.Spec) ([]study.EarlierTrial, []Skipped, error) {
	c, err := newCollector(spec)
	if err != nil {
		return nil, nil, err
	}
	c.partial = true
	_, c.leveled = c.space.Fidelity()
	found, skipped, err := c.read(form, r)
	if err != nil {
		return nil, nil, err
	}
	trials := each.Of(found, func(t Evaluated) study.EarlierTrial {
		return study.EarlierTrial{Parameters: t.Point, Value: t.Values.First(), Seconds: t.Seconds, Cost: t.Cost}
	})
	if len(trials) == 0 {
		why := "it has no trials"
		switch {
		case c.other != "":
			why = c.ofOther(0)
		case len(skipped) > 0:
			why = fmt.Sprintf("no trial can be used, such as %s: %s", skipped[0].Place, skipped[0].Why)
		}
		return nil, nil, fmt.Errorf("%w: %s", ErrSource, why)
	}
	return trials, skipped, nil
}

// effortKind returns what a column, or a field of JSON, is about if it may say how long trials took or what they have cost. The names
// are those of trials.csv and of `fantasia trial list -o json`.
func effortKind(name string, field fieldKind) columnKind {
	switch {
	case name == "seconds" && field == aCell:
		return ofSeconds
	case name == "cost" && field == aCell:
		return ofCost
	case name == "times" && field == anObject:
		return ofTimes
	}
	return ignored
}

// effort returns the number in a cell; 0 if it is none, or negative.
func (c *collector) effort(place string, col *column, field any) float64 {
	c.signs.see(place, col.name, field)
	v, err := c.number(field)
	if err != nil {
		return 0
	}
	return max(0, v)
}

// between returns the seconds from the start to the end of a trial's last attempt, 0 if they are not known.
func between(times any) float64 {
	var at [2]time.Time
	for i, name := range []string{"started", "ended"} {
		text, _ := times.(map[string]any)[name].(string)
		var err error
		if at[i], err = time.Parse(time.RFC3339Nano, text); err != nil {
			return 0
		}
	}
	return max(0, at[1].Sub(at[0]).Seconds())
}

func (c *collector) read(form string, r io.Reader) ([]Evaluated, []Skipped, error) {
	switch form {
	case "csv":
		return c.csv(r)
	case "json":
		return c.json(r)
	case "parquet":
		whole, err := ReadFile(r) // its directory is at the end
		if err != nil {
			return nil, nil, err
		}
		return c.parquet(whole)
	default:
		return nil, nil, fmt.Errorf("%w: its format is %q: want csv, json or parquet", ErrSource, form)
	}
}

// keepKnown adds a trial with those of its parameters that have a place in the space.
func (c *collector) keepKnown(place string, given map[string]any, values study.Values) {
	point := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		p, v := c.byName[name], given[name]
		if p == nil || p.Type == study.Fixed {
			continue // it says nothing of where the trial lies
		}
		number := p.Type == study.Float || p.Type == study.Int
		var typed any
		var err error
		if number {
			typed, err = c.number(v)
		} else {
			typed, err = c.typed(p, v)
		}
		if err != nil && (number || p.Type == study.Fidelity || blank(v)) {
			continue // there is none, or it is of another type there
		}
		if _, ok := p.Coordinate(typed); err != nil || !ok {
			c.skip(place, "parameter %s is %s: want %s", name, shown(v), p.Accepts())
			return
		}
		if n, ok := typed.(float64); ok && p.Type == study.Int && n == math.Trunc(n) && math.Abs(n) <= study.MaxExact {
			typed = int64(n)
		}
		point[name] = typed
	}
	for removed := true; removed; {
		removed = c.dropInactive(point, given)
	}
	if len(point) == 0 {
		c.skip(place, "it has none of the study's parameters: want some of %s", c.parameterNames())
		return
	}
	c.trials = append(c.trials, Evaluated{Place: place, Point: point, Values: values})
}

// dropInactive removes a blank value of a parameter whose condition does not hold, and reports whether it removed one:
// a cell is blank where a parameter is inactive, and may be a choice where it is not. Others may depend on what it removed.
func (c *collector) dropInactive(point, given map[string]any) bool {
	before := len(point)
	maps.DeleteFunc(point, func(name string, _ any) bool {
		if !blank(given[name]) {
			return false
		}
		for parent, allowed := range c.byName[name].When {
			p := c.byName[parent]
			value, known := point[parent]
			holds := known && p != nil && slices.ContainsFunc(allowed, func(choice any) bool {
				a, _ := p.Index(choice)
				b, ok := p.Index(value)
				return ok && a == b
			})
			if !holds {
				return true
			}
		}
		return false
	})
	return len(point) < before
}

// parameterNames lists the study's parameters.
func (c *collector) parameterNames() string {
	return clipped(strings.Join(slices.Sorted(maps.Keys(c.byName)), ", "))
}
