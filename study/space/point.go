package space

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// ErrNotInSpace is wrapped by every error that explains why a point is not in a space.
var ErrNotInSpace = errors.New("not a point of the space")

// Check returns nil if p is a point of the space: each active parameter, and no other,
// has a value of its type, range and steps, and every constraint is met. Otherwise the
// error, an ErrNotInSpace, explains why.
func (s *Space) Check(p study.Point) error {
	for i, param := range s.params {
		value, ok := p[param.Name]
		active := s.active(p, i)
		switch {
		case active && !ok:
			return fmt.Errorf("%w: parameter %s is missing: %s", ErrNotInSpace, param.Name, param.Accepts())
		case !active && ok:
			return fmt.Errorf("%w: parameter %s has the value %s, but is not active here: %s",
				ErrNotInSpace, param.Name, study.Quote(value), s.activeWhere(i))
		case active && !param.Has(value):
			return fmt.Errorf("%w: parameter %s: %s (%T) is not accepted; want %s",
				ErrNotInSpace, param.Name, study.Quote(value), value, param.Accepts())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if _, ok := s.index[name]; !ok {
			return fmt.Errorf("%w: there is no parameter %q%s", ErrNotInSpace, name, check.DidYouMean(name, s.order))
		}
	}
	for _, c := range s.checks {
		if !c.holds(p) {
			return fmt.Errorf("%w: it does not meet the constraint %q", ErrNotInSpace, c.Source)
		}
	}
	return nil
}

// Normalize converts decoded JSON or YAML to a point: it converts each number to the
// type of its parameter, and snaps it to the grid if it is off by rounding only. The
// point may be partial, but a conditional parameter must come with those that it
// depends on. Fixed parameters that are certain to be active are filled in. Constraints
// are not checked. The error, an ErrNotInSpace, names every value that does not fit.
func (s *Space) Normalize(raw map[string]any) (study.Point, error) {
	var errs []error
	p := s.normalize(raw, func(name string, _ bool, message string) {
		errs = append(errs, fmt.Errorf("%w: parameter %s: %s", ErrNotInSpace, name, message))
	})
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// Place is Normalize for a whole point: a parameter that is active and has no value is an
// error, too.
func (s *Space) Place(raw map[string]any) (study.Point, error) {
	p, err := s.Normalize(raw)
	if err != nil {
		return nil, err
	}
	for i, param := range s.params {
		if _, ok := p[param.Name]; !ok && s.active(p, i) {
			return nil, fmt.Errorf("%w: parameter %s is missing: %s", ErrNotInSpace, param.Name, param.Accepts())
		}
	}
	return p, nil
}

// normalize is Normalize; it passes each problem on with the parameter's name, and
// whether that parameter exists.
func (s *Space) normalize(raw map[string]any, problem func(name string, known bool, message string)) study.Point {
	p := make(study.Point, len(raw))
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		i, ok := s.index[name]
		if !ok {
			problem(name, false, "there is no such parameter"+check.DidYouMean(name, s.order))
			continue
		}
		value, err := s.params[i].Convert(raw[name])
		if err != nil {
			problem(name, true, err.Error())
			continue
		}
		p[s.params[i].Name] = value // the space's text, which all points then share
	}
	for i, param := range s.params {
		if param.Type == study.Fixed && s.active(p, i) {
			p[param.Name] = param.Value
		}
	}
	for i, param := range s.params {
		if _, ok := p[param.Name]; !ok || s.active(p, i) {
			continue
		}
		message := "it is not active here: " + s.activeWhere(i)
		for _, c := range s.conds[i] {
			parent := s.params[c.parent].Name
			if _, ok := raw[parent]; !ok && s.params[c.parent].Type != study.Fixed {
				message = fmt.Sprintf("give %s too: %s", parent, s.activeWhere(i))
			}
		}
		problem(param.Name, true, message)
	}
	return p
}

// activeWhere describes where the i-th parameter is active.
func (s *Space) activeWhere(i int) string {
	text := s.params[i].Name + " is active only where "
	for j, c := range s.conds[i] {
		if j > 0 {
			text += " and "
		}
		text += s.params[c.parent].Name + " is one of " + study.List(c.values)
	}
	return text
}

// Key returns canonical text of a point: points of the space are equal exactly if their
// keys are. It is a JSON object in the order of Parameters.
func (s *Space) Key(p study.Point) string {
	text, err := study.Object(s.order, p)
	if err != nil { // no space has such a value, for example NaN
		return fmt.Sprintf("%v", map[string]any(p))
	}
	return string(text)
}
