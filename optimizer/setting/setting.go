// Package setting describes, checks and reads the settings of an optimiser or of a
// rule for early stopping: algorithm.settings and earlyStopping.settings of a study file.
// Each lists its settings once; the list provides the defaults, the help and the errors.
package setting

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Setting is a documented setting of an optimiser. Its type is that of its default:
// int, float64, string or bool.
type Setting struct {
	Name string
	// Doc describes the setting in one line.
	Doc string
	// Default is the value of a setting that is not set.
	Default any
	// Min and Max are the inclusive bounds of an int or a float64.
	Min, Max float64
	// Choices are the accepted values of a string.
	Choices []string
	// Experimental marks a setting for which no other value was measured to be better than the
	// default. It is kept so that the measurements can be repeated.
	Experimental bool
}

// Accepted describes the accepted values, for errors and help.
func (s Setting) Accepted() string {
	switch s.Default.(type) {
	case int:
		return fmt.Sprintf("an integer from %.0f to %.0f", s.Min, s.Max)
	case float64:
		return fmt.Sprintf("a number from %g to %g", s.Min, s.Max)
	case bool:
		return "true or false"
	default:
		return "one of " + strings.Join(s.Choices, ", ")
	}
}

// Error is an unknown setting, or one whose value is not accepted.
type Error struct {
	// Name is the setting's name as it was written.
	Name string
	// Value is the value that was given.
	Value any
	// Reason describes what would be accepted.
	Reason string
	// Known lists the names of all settings if Name is unknown; otherwise it is nil.
	Known []string
}

// Error names the setting, its value and what would be accepted.
func (e *Error) Error() string {
	if e.Known != nil {
		return fmt.Sprintf("unknown setting %q: %s", e.Name, e.Reason)
	}
	return fmt.Sprintf("setting %q: %v is not accepted; want %s", e.Name, e.Value, e.Reason)
}

// Set lists the settings of an optimiser or of a rule.
type Set []Setting

// Experimental returns the set with some of its settings marked as experimental.
func (s Set) Experimental(names ...string) Set {
	for i := range s {
		s[i].Experimental = s[i].Experimental || slices.Contains(names, s[i].Name)
	}
	return s
}

// Values are checked settings with defaults filled in. The zero value is not usable.
type Values struct{ of map[string]any }

// Parse checks raw, as decoded from YAML or JSON, and fills in the defaults. The error
// joins an *Error for each wrong setting, in the order of names.
func (s Set) Parse(raw map[string]any) (Values, error) {
	values := Values{of: make(map[string]any, len(s))}
	var problems []error
	for _, name := range sortedKeys(raw) {
		i := slices.IndexFunc(s, func(known Setting) bool { return known.Name == name })
		if i < 0 {
			problems = append(problems, s.unknown(name, raw[name]))
			continue
		}
		value, ok := s[i].convert(raw[name])
		if !ok {
			problems = append(problems, &Error{Name: name, Value: raw[name], Reason: s[i].Accepted()})
			continue
		}
		values.of[name] = value
	}
	for _, known := range s {
		if _, given := values.of[known.Name]; !given {
			values.of[known.Name] = known.Default
		}
	}
	return values, errors.Join(problems...)
}

func (s Set) unknown(name string, value any) *Error {
	names := make([]string, len(s))
	for i, known := range s {
		names[i] = known.Name
	}
	reason := "this algorithm has no settings"
	if len(names) > 0 {
		reason = "the settings are " + strings.Join(names, ", ")
	}
	return &Error{Name: name, Value: value, Reason: reason, Known: names}
}

// convert converts v to the setting's type, and reports whether it is accepted.
func (s Setting) convert(v any) (any, bool) {
	switch s.Default.(type) {
	case int:
		f, ok := number(v)
		return int(f), ok && f == math.Trunc(f) && f >= s.Min && f <= s.Max
	case float64:
		f, ok := number(v)
		return f, ok && f >= s.Min && f <= s.Max
	case bool:
		b, ok := v.(bool)
		return b, ok
	default:
		text, ok := v.(string)
		if yes, boolean := v.(bool); boolean {
			text, ok = affirmed(yes), true
		}
		return text, ok && slices.Contains(s.Choices, text)
	}
}

// affirmed returns the word that YAML 1.1, which kubectl uses, reads as a boolean
// unless it is quoted.
func affirmed(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// number converts the numeric types that YAML and JSON decoders produce.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v)
	default:
		return 0, false
	}
}

func sortedKeys(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Int returns the value of a setting whose default is an int. Like the other readers,
// it panics if there is no such setting of that type.
func (v Values) Int(name string) int { return v.of[name].(int) }

// Float returns the value of a setting whose default is a float64.
func (v Values) Float(name string) float64 { return v.of[name].(float64) }

// String returns the value of a setting whose default is a string.
func (v Values) String(name string) string { return v.of[name].(string) }

// Bool returns the value of a setting whose default is a bool.
func (v Values) Bool(name string) bool { return v.of[name].(bool) }
