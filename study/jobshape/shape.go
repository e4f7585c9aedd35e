// Package jobshape checks that the template of a study's Jobs is a Job as Kubernetes defines it, by
// Kubernetes' own types. Unlike Kubernetes' decoder, it reports all problems at once, and says of each
// what would be accepted.
package jobshape

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// fieldsOf returns the fields of a struct by their names in JSON. Those of embedded structs are among
// them.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			maps.Copy(all, fieldsOf(f.Type))
		} else {
			all[name] = f.Type
		}
	}
	return all
}

// walker compares values with types.
type walker struct{ *check.Problems }

// walk checks a value, as encoding/json decodes it with json.Number. Kubernetes takes null as a field
// that is absent.
func (w walker) walk(path string, of reflect.Type, value any) {
	if value == nil {
		return
	}
	own := reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()) // reads JSON in a way of its own
	switch kind := of.Kind(); {
	case kind == reflect.Pointer:
		w.walk(path, of.Elem(), value)
	case own:
		w.scalar(path, of, value)
	case kind == reflect.Slice:
		w.list(path, of.Elem(), value)
	case kind == reflect.Map:
		w.mapping(path, value, func(string) (reflect.Type, bool) { return of.Elem(), true })
	case kind == reflect.Struct:
		known := fieldsOf(of)
		w.mapping(path, value, func(name string) (reflect.Type, bool) {
			field, ok := known[name]
			if !ok {
				w.unknown(path, name, slices.Sorted(maps.Keys(known)))
			}
			return field, ok
		})
	default:
		w.scalar(path, of, value)
	}
}

func (w walker) scalar(path string, of reflect.Type, value any) {
	if wanted := wanted(of, value); wanted != "" {
		w.Add(path, "expected %s, got %s%s", wanted, describe(value), word(value))
	}
}

func (w walker) list(path string, of reflect.Type, value any) {
	elements, ok := value.([]any)
	if !ok {
		w.Add(path, "expected a list, got %s", describe(value))
	}
	for i, element := range elements {
		w.walk(fmt.Sprintf("%s[%d]", path, i), of, element)
	}
}

// mapping checks a mapping whose values have types by their names.
func (w walker) mapping(path string, value any, typeOf func(name string) (of reflect.Type, ok bool)) {
	all, ok := value.(map[string]any)
	if !ok {
		w.Add(path, "expected a mapping, got %s", describe(value))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if of, ok := typeOf(name); ok {
			w.walk(path+check.Key(name), of, all[name])
		}
	}
}

// unknown reports a field that a struct has not.
func (w walker) unknown(path, name string, known []string) {
	if w.Full() {
		return
	}
	advice := check.DidYouMean(name, known)
	if advice == "" {
		advice = "; known are " + strings.Join(known, ", ")
	}
	w.Add(path+check.Key(name), "unknown field %q%s", name, advice)
}

// quantity is how Kubernetes writes amounts such as 500m or 2Gi
// (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity). It requires a
// digit, while Kubernetes takes a text such as "." as 0. It allows exponents of at most three digits,
// because Kubernetes writes the number out: 1e-99999999 takes it minutes and gigabytes.
var quantity = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?$`)

// wanted returns what a value of a type that is no list or mapping must be, or "" if it is that.
func wanted(of reflect.Type, value any) string {
	text, isText := value.(string)
	switch of {
	case reflect.TypeFor[intstr.IntOrString]():
		return unless(isText || isInt(value, 32), "text or a whole number of 32 bits")
	case reflect.TypeFor[resource.Quantity]():
		return unless(isQuantity(value), `a quantity such as 2, 500m or "4Gi"`)
	case reflect.TypeFor[metav1.Time]():
		_, err := time.Parse(time.RFC3339, text)
		return unless(isText && err == nil, "a time such as 2026-01-31T12:00:00Z")
	case reflect.TypeFor[metav1.FieldsV1]():
		return ""
	}
	switch of.Kind() {
	case reflect.String:
		return unless(isText, "text")
	case reflect.Bool:
		_, ok := value.(bool)
		return unless(ok, "true or false")
	case reflect.Int32, reflect.Int64:
		return unless(isInt(value, of.Bits()), fmt.Sprintf("a whole number of %d bits", of.Bits()))
	default:
		return "a field of a known type, not " + of.String()
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
