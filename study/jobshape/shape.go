// Package jobshape checks that the template of a study's Jobs is a Job as Kubernetes defines it. It
// knows the fields of a Job from a table, so that programs that only read study files need not link
// Kubernetes' types.
package jobshape

import (
	_ "embed" // for the table
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// fields is the table of a Job's fields: package table says how to read it. make generate writes it.
//
//go:embed fields.txt
var fields string

// field is a field of a struct.
type field struct{ name, kind string }

// structs are the fields of each struct of the table.
var structs = sync.OnceValue(func() map[string][]field {
	all, current := map[string][]field{}, ""
	for line := range strings.Lines(fields) {
		line = strings.TrimSuffix(line, "\n")
		if name, kind, ok := strings.Cut(strings.TrimPrefix(line, "\t"), " "); ok {
			all[current] = append(all[current], field{name, kind})
		} else {
			current = line
			all[current] = nil
		}
	}
	return all
})

// walker compares values with the table.
type walker struct{ *check.Report }

// walk checks a value, as encoding/json decodes it with json.Number. Kubernetes takes null as a field
// that is absent.
func (w walker) walk(path, kind string, value any) {
	if value == nil || kind == "any" {
		return
	}
	if of, ok := strings.CutPrefix(kind, "[]"); ok {
		w.list(path, of, value)
	} else if of, ok := strings.CutPrefix(kind, "{}"); ok {
		w.mapping(path, value, func(string) (string, bool) { return of, true })
	} else if known, ok := structs()[kind]; ok {
		w.mapping(path, value, func(name string) (string, bool) {
			i := slices.IndexFunc(known, func(f field) bool { return f.name == name })
			if i < 0 {
				w.unknown(path, name, known)
				return "", false
			}
			return known[i].kind, true
		})
	} else if wanted := wanted(kind, value); wanted != "" {
		w.Add(path, "expected %s, got %s%s", wanted, describe(value), word(value))
	}
}

func (w walker) list(path, of string, value any) {
	elements, ok := value.([]any)
	if !ok {
		w.Add(path, "expected a list, got %s", describe(value))
	}
	for i, element := range elements {
		w.walk(fmt.Sprintf("%s[%d]", path, i), of, element)
	}
}

// mapping checks a mapping whose values have kinds by their names.
func (w walker) mapping(path string, value any, kindOf func(name string) (kind string, ok bool)) {
	all, ok := value.(map[string]any)
	if !ok {
		w.Add(path, "expected a mapping, got %s", describe(value))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if kind, ok := kindOf(name); ok {
			w.walk(path+check.Key(name), kind, all[name])
		}
	}
}

// unknown reports a field that a struct has not.
func (w walker) unknown(path, name string, known []field) {
	if w.Full() {
		return
	}
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.name
	}
	slices.Sort(names)
	advice := check.DidYouMean(name, names)
	if advice == "" {
		advice = "; known are " + strings.Join(names, ", ")
	}
	w.Add(path+check.Key(name), "unknown field %q%s", name, advice)
}

// quantity is how Kubernetes writes amounts such as 500m or 2Gi
// (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity). It requires a
// digit, while Kubernetes takes a text such as "." as 0. It allows exponents of at most three digits,
// because Kubernetes writes the number out: 1e-99999999 takes it minutes and gigabytes.
var quantity = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?$`)

// wanted returns what a scalar of a kind must be, or "" if the value is that.
func wanted(kind string, value any) string {
	text, isText := value.(string)
	switch kind {
	case "string":
		return unless(isText, "text")
	case "bool":
		_, ok := value.(bool)
		return unless(ok, "true or false")
	case "int32":
		return unless(isInt(value, 32), "a whole number of 32 bits")
	case "int64":
		return unless(isInt(value, 64), "a whole number of 64 bits")
	case "intOrString":
		return unless(isText || isInt(value, 32), "text or a whole number of 32 bits")
	case "quantity":
		return unless(isQuantity(value), `a quantity such as 2, 500m or "4Gi"`)
	case "time":
		_, err := time.Parse(time.RFC3339, text)
		return unless(isText && err == nil, "a time such as 2026-01-31T12:00:00Z")
	default:
		return "a field of a known kind, not " + kind
	}
}

// unless returns a text if something does not hold.
func unless(holds bool, text string) string {
	if holds {
		return ""
	}
	return text
}

// isInt reports whether a value is a whole number of so many bits, written as such.
func isInt(value any, bits int) bool {
	number, ok := value.(json.Number)
	if !ok {
		return false
	}
	_, err := strconv.ParseInt(number.String(), 10, bits)
	return err == nil
}

// isQuantity reports whether a value is a quantity. Kubernetes reads the JSON of a text without
// resolving its escapes, and ignores space around it.
func isQuantity(value any) bool {
	text, err := json.Marshal(value)
	_, isText := value.(string)
	_, isNumber := value.(json.Number)
	return err == nil && (isText || isNumber) && quantity.MatchString(strings.TrimSpace(strings.Trim(string(text), `"`)))
}

// describe names a value for a message.
func describe(value any) string {
	const limit = 60
	switch v := value.(type) {
	case string:
		if len(v) > limit {
			return fmt.Sprintf("a text of %d bytes", len(v))
		}
		return strconv.Quote(v)
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	default:
		text := fmt.Sprint(v)
		return text[:min(len(text), limit)]
	}
}

// word explains that a ${word} is text.
func word(value any) string {
	if text, ok := value.(string); ok && strings.Contains(text, "${") {
		return ": ${words} can only be in fields of text"
	}
	return ""
}
