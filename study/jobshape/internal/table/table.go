// Package table writes down the fields of Kubernetes' Go types.
package table

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// special are the types that read JSON in a way of their own.
var special = map[reflect.Type]string{
	reflect.TypeFor[intstr.IntOrString](): "intOrString", reflect.TypeFor[resource.Quantity](): "quantity",
	reflect.TypeFor[metav1.Time](): "time", reflect.TypeFor[metav1.FieldsV1](): "any",
}

// Of returns the table of a struct type and of all that its fields lead to: a line with the name of
// each struct, and below it, behind a tab, the name and the kind of each field in JSON. A kind is
// the name of a struct, string, bool, int32, int64, intOrString, quantity, time or any; [] before it
// makes it a list, and {} a mapping with such values.
func Of(root reflect.Type) (string, error) {
	w := &writer{names: map[string]reflect.Type{}, fields: map[string]string{}}
	if _, err := w.kind(root); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(w.fields)) {
		b.WriteString(name + "\n" + w.fields[name])
	}
	return b.String(), nil
}

// writer collects the structs that were met, and their lines.
type writer struct {
	names  map[string]reflect.Type
	fields map[string]string
}

// kind returns the kind of a type, and collects the structs that it leads to.
func (w *writer) kind(t reflect.Type) (string, error) {
	if name, ok := special[t]; ok {
		return name, nil
	}
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return "", fmt.Errorf("%v reads JSON in a way of its own: add it to the special types", t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.kind(t.Elem())
	case reflect.Slice:
		of, err := w.kind(t.Elem())
		return "[]" + of, err
	case reflect.Map:
		of, err := w.kind(t.Elem())
		return "{}" + of, err
	case reflect.Struct:
		return t.Name(), w.collect(t)
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		return t.Kind().String(), nil
	default:
		return "", fmt.Errorf("%v: no kind for it", t)
	}
}

// collect collects a struct.
func (w *writer) collect(t reflect.Type) error {
	if seen, ok := w.names[t.Name()]; ok {
		if seen != t {
			return fmt.Errorf("%v and %v have the same name", seen, t)
		}
		return nil
	}
	w.names[t.Name()] = t
	lines, err := w.lines(t)
	w.fields[t.Name()] = lines
	return err
}

// lines returns a line for each field of a struct. The fields of embedded structs are among them.
func (w *writer) lines(t reflect.Type) (lines string, err error) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			inner, err := w.lines(f.Type)
			if err != nil {
				return "", err
			}
			lines += inner
			continue
		}
		kind, err := w.kind(f.Type)
		if err != nil || name == "" {
			return "", fmt.Errorf("%v.%s, %q in JSON: %w", t, f.Name, name, err)
		}
		lines += "\t" + name + " " + kind + "\n"
	}
	return lines, nil
}
