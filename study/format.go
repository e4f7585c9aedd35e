package study

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Format is how a value of a parameter is written in argv and in the
// environment: a float as the shortest decimal that reads back equal (with an
// exponent below 1e-4 and from 1e21 on, as JSON has it), a boolean as true or
// false, a string as it is.
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

// Environment is what a program's environment says about its parameters:
// FANTASIA_PARAMETERS is all of them as a JSON object, and each has a variable
// as EnvironmentName says. Entries are "key=value", in the order of the names
// given; names without a value in the point are left out.
func Environment(order []string, point Point) ([]string, error) {
	object, err := Object(order, point)
	if err != nil {
		return nil, err
	}
	env := []string{"FANTASIA_PARAMETERS=" + string(object)}
	for _, name := range order {
		if value, ok := point[name]; ok {
			env = append(env, EnvironmentName(name)+"="+Format(value))
		}
	}
	return env, nil
}

// EnvironmentName is the variable that holds the parameter of that name:
// FANTASIA_PARAM_ and the name in upper case, with an underscore for whatever is
// neither a letter nor a digit.
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

// Object is the point as a JSON object whose keys come in the order given.
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

// appendJSON appends a value with its type: a float64 has a point or an exponent.
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
