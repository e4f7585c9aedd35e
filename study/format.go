package study

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Format formats a parameter's value for argv and the environment: a float as the
// shortest decimal that parses to the same number (with an exponent below 1e-4 and from
// 1e21 on, as in JSON), a boolean as true or false, a string unchanged.
func Format(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if size := math.Abs(v); size != 0 && (size < 1e-4 || size >= 1e21) {
			return strconv.FormatFloat(v, 'e', -1, 64)
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// Environment returns a program's environment variables about its parameters:
// FANTASIA_PARAMETERS is a JSON object with all of them, and each has a variable of its
// own, named by EnvironmentName, unless another one has the same name there, such as c
// beside C. Entries are "key=value", in the given order of names; names without a value in
// the point are omitted.
func Environment(order []string, point Point) ([]string, error) {
	object, err := Object(order, point)
	if err != nil {
		return nil, err
	}
	env := []string{"FANTASIA_PARAMETERS=" + string(object)}
	shared := make(map[string]int)
	for _, name := range order {
		shared[EnvironmentName(name)]++
	}
	for _, name := range order {
		if value, ok := point[name]; ok && shared[EnvironmentName(name)] == 1 {
			env = append(env, EnvironmentName(name)+"="+Format(value))
		}
	}
	return env, nil
}

// EnvironmentName returns the variable of a parameter: FANTASIA_PARAM_ and the name in
// upper case, with underscores for characters other than letters and digits.
func EnvironmentName(name string) string {
	return "FANTASIA_PARAM_" + strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		default:
			return '_'
		}
	}, name)
}

// Object returns the point as a JSON object with its keys in the given order.
func Object(order []string, point Point) ([]byte, error) {
	b := []byte{'{'}
	for _, name := range order {
		value, ok := point[name]
		if !ok {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendJSON(b, name); err != nil {
			return nil, fmt.Errorf("parameter %q: %w", name, err)
		}
		if b, err = appendJSON(append(b, ':'), value); err != nil {
			return nil, fmt.Errorf("parameter %q: %w", name, err)
		}
	}
	return append(b, '}'), nil
}

// appendJSON appends a value so that its type is kept: a float64 has a point or an
// exponent.
func appendJSON(b []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case bool:
		return strconv.AppendBool(b, v), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case float64:
		text, err := exactNumber(v).MarshalJSON()
		return append(b, text...), err
	default:
		text, err := marshal(exact(v))
		return append(b, text...), err
	}
}
