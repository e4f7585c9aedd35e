package file

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// The limits of a study file that aliases cannot circumvent.
const (
	maxValues = 1 << 17
	maxDepth  = 100
	// maxText is the largest total size of keys and scalar values, in bytes.
	maxText = MaxSize
)

// maxPaths returns the largest total size of all paths in a file of a size, in bytes. Paths
// repeat the keys that lead to a value, so a long key with many values below it counts often.
func maxPaths(size int) int { return 64<<10 + 8*size }

// decoder decodes YAML nodes into Go values, by their json tags, and reports everything
// that does not fit, with its place.
type decoder struct {
	*check.Problems
	values, depth int
	bytes, paths  int
	maxPaths      int
	exhausted     bool
	isJSON        bool
}

// durationType is the one scalar type that its reflect.Kind does not identify.
var durationType = reflect.TypeFor[study.Duration]()

// decode decodes n into v, which holds the field at path.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, path string) {
	at := check.At(n.Line, n.Column)
	d.Places[path] = at
	d.depth++
	defer func() { d.depth-- }()
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.exhausted = d.exhausted || d.Full()
	if d.values++; d.values > maxValues || d.depth > maxDepth {
		d.exhaust(at, path, "too much: a study file holds at most %d values, nested at most %d deep, aliases included",
			maxValues, maxDepth)
	}
	d.spend(at, path, n)
	if d.exhausted {
		return
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" && nullable(v.Kind()):
	case ambiguous(n) != "":
		d.Add(path, "%s", ambiguous(n))
	case v.Type() == durationType:
		d.duration(n, v, path)
	default:
		d.decodeKind(n, v, path)
	}
}

// spend counts the text of a scalar, its own or an alias's, and of the path that leads
// to it.
func (d *decoder) spend(at check.Place, path string, scalar *yaml.Node) {
	d.bytes += len(scalar.Value)
	d.paths += len(path)
	if d.bytes > maxText {
		d.exhaust(at, "", "too much: the keys and values of a study file have at most %d bytes, aliases included", maxText)
	}
	if d.paths > d.maxPaths {
		d.exhaust(at, "", "too much: the file has too many values below long keys, aliases included: use shorter keys, or fewer aliases")
	}
}

// exhaust ends the decoding.
func (d *decoder) exhaust(at check.Place, path, format string, args ...any) {
	if !d.exhausted {
		d.AddAt(at, path, format, args...)
	}
	d.exhausted = true
}

// nullable reports whether a field may be null, which omits it; strings and numbers may
// not.
func nullable(k reflect.Kind) bool {
	return k == reflect.Pointer || k == reflect.Slice || k == reflect.Map || k == reflect.Interface
}

func (d *decoder) decodeKind(n *yaml.Node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		element := reflect.New(v.Type().Elem())
		d.decode(n, element.Elem(), path)
		v.Set(element)
	case reflect.Struct:
		if d.is(n, yaml.MappingNode, path, "fields") {
			d.decodeStruct(n, v, path)
		}
	case reflect.Map:
		if d.is(n, yaml.MappingNode, path, "fields") {
			d.decodeMap(n, v, path)
		}
	case reflect.Slice:
		if d.is(n, yaml.SequenceNode, path, "a list") {
			d.decodeSlice(n, v, path)
		}
	case reflect.Interface:
		if value := d.decodeAny(n, path); value != nil {
			v.Set(reflect.ValueOf(value))
		}
	case reflect.String:
		if text, ok := d.text(n, path); ok {
			v.SetString(text)
		}
	case reflect.Bool:
		if b, ok := d.decodeAny(n, path).(bool); ok {
			v.SetBool(b)
		} else {
			d.Add(path, "%s where true or false must be", describe(n))
		}
	case reflect.Int:
		if i, ok := d.integer(n, path, math.MinInt64, math.MaxInt64); ok {
			v.SetInt(int64(i))
		}
	case reflect.Uint64:
		d.unsigned(n, v, path)
	case reflect.Float64:
		if f, ok := d.exactly(n, path); ok {
			v.SetFloat(f)
		}
	default:
		panic(fmt.Sprintf("study: no way to read a %s from YAML", v.Type()))
	}
}

// is reports whether n has the wanted kind, and otherwise reports a problem.
func (d *decoder) is(n *yaml.Node, kind yaml.Kind, path, want string) bool {
	if n.Kind == kind {
		return true
	}
	d.Add(path, "%s where %s must be", describe(n), want)
	return false
}

// decodeStruct decodes each pair of the mapping into the field of that name.
func (d *decoder) decodeStruct(n *yaml.Node, v reflect.Value, path string) {
	fields := make(map[string]reflect.Value)
	var names []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		fields[name] = v.Field(i)
		names = append(names, name)
	}
	d.pairs(n, path, func(key *yaml.Node, value *yaml.Node, path string) {
		field, ok := fields[key.Value]
		if !ok && ofServer(v.Type(), key.Value) {
			return
		}
		if !ok {
			d.unknownField(key, path, names)
			return
		}
		d.decode(value, field, path)
		if k := field.Kind(); (k == reflect.Slice || k == reflect.Map) && field.Len() == 0 {
			field.SetZero() // an empty list counts as none
		}
	})
}

// unknownField reports a key without a field in the struct.
func (d *decoder) unknownField(key *yaml.Node, path string, names []string) {
	at := check.At(key.Line, key.Column)
	if key.ShortTag() == "!!merge" {
		d.AddAt(at, path, "merge keys are not supported: write the fields out")
		return
	}
	d.AddAt(at, path, "unknown field %q%s; known are %s", key.Value, check.DidYouMean(key.Value, names), strings.Join(names, ", "))
}

// pairs calls each for the pairs of a mapping, and reports duplicate keys and keys that
// are not strings.
func (d *decoder) pairs(n *yaml.Node, path string, each func(key, value *yaml.Node, path string)) {
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content) && !d.exhausted; i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := check.At(key.Line, key.Column)
		for key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			d.AddAt(at, path, "%s as a key: a key is text", describe(key))
			continue
		}
		if d.spend(at, path, key); d.exhausted {
			return
		}
		field := strings.TrimPrefix(path+check.Key(key.Value), ".")
		if line, ok := seen[key.Value]; ok {
			d.AddAt(at, field, "the key %q is here a second time, after line %d: keep one of them", key.Value, line)
			continue
		}
		seen[key.Value] = at.Line
		d.Keys[field] = at
		each(key, value, field)
	}
}

func (d *decoder) decodeMap(n *yaml.Node, v reflect.Value, path string) {
	v.Set(reflect.MakeMap(v.Type()))
	d.pairs(n, path, func(key, value *yaml.Node, path string) {
		element := reflect.New(v.Type().Elem()).Elem()
		d.decode(value, element, path)
		v.SetMapIndex(reflect.ValueOf(key.Value), element)
	})
}

func (d *decoder) decodeSlice(n *yaml.Node, v reflect.Value, path string) {
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, element := range n.Content {
		d.decode(element, list.Index(i), path+"["+strconv.Itoa(i)+"]")
	}
	v.Set(list)
}

// decodeAny decodes a value whose type the study file determines: string, bool, int64,
// float64, []any or map[string]any.
func (d *decoder) decodeAny(n *yaml.Node, path string) any {
	switch n.Kind {
	case yaml.MappingNode:
		var m map[string]any
		d.decodeMap(n, reflect.ValueOf(&m).Elem(), path)
		return m
	case yaml.SequenceNode:
		var list []any
		d.decodeSlice(n, reflect.ValueOf(&list).Elem(), path)
		return list
	}
	switch n.ShortTag() {
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			d.Add(path, "%s is not a boolean: write true or false", n.Value)
		}
		return b
	case "!!int", "!!float":
		if strings.Trim(n.Value, "+-_0123456789") != "" && n.ShortTag() == "!!float" {
			break
		}
		var i int64
		if err := n.Decode(&i); err == nil && i >= -study.MaxExact && i <= study.MaxExact {
			return i
		}
		d.Add(path, "%s is beyond ±%d (2^53-1), where numbers lose their last digits: put it in quotes", n.Value, study.MaxExact)
		return nil
	default:
		if overlong(n) {
			d.Add(path, "%s has more than 64 bits: put it in quotes", n.Value)
			return nil
		}
		text, _ := d.text(n, path)
		return text
	}
	if f, ok := d.exactly(n, path); ok {
		return f
	}
	return nil
}
