package study

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Scalar returns v as one of the types of parameters' values: string, bool, int64 or a
// finite float64 (with -0 as 0).
func Scalar(v any) (any, bool) {
	switch v := v.(type) {
	case string, bool, int64:
		return v, true
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint64:
		if v > math.MaxInt64 {
			return nil, false
		}
		return int64(v), true
	case float32:
		return Scalar(float64(v))
	case float64:
		return v + 0, Finite(v)
	case json.Number:
		n, err := number(v.String())
		if err != nil {
			return nil, false
		}
		return Scalar(n)
	default:
		return nil, false
	}
}

// BooleanWord returns the boolean that YAML 1.1 reads a text as, if YAML 1.2 reads it as text. A tool
// that rewrites a study file, such as kubectl, may have done the former.
func BooleanWord(text string) (value, ok bool) {
	switch strings.ToLower(text) {
	case "y", "yes", "on":
		return true, true
	case "n", "no", "off":
		return false, true
	}
	return false, false
}

// Equal reports whether two scalars are the same value. An int64 and a float64 are the
// same if they are the same number.
func Equal(a, b any) bool {
	if a == b {
		return true
	}
	switch a := a.(type) {
	case int64:
		b, ok := b.(float64)
		return ok && float64(a) == b && a == int64(b)
	case float64:
		b, ok := b.(int64)
		return ok && float64(b) == a && b == int64(a)
	default:
		return false
	}
}

// Contains reports whether list holds a value equal to v.
func Contains(list []any, v any) bool {
	return slices.ContainsFunc(list, func(w any) bool { return Equal(w, v) })
}

// Number returns a number as a float64.
func Number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, !math.IsNaN(v)
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	default:
		return 0, false
	}
}

// Quote formats a value for a message.
func Quote(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case nil:
		return "null"
	default:
		return Format(v)
	}
}
