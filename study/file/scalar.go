package file

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/study"
)

// ambiguous says why the versions of YAML read a number differently; it is empty if they do not.
func ambiguous(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" {
		return ""
	}
	digits := strings.TrimLeft(n.Value, "+-")
	switch {
	case len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9':
		return n.Value + " begins with a zero, which YAML reads as an octal number: write it without, or in quotes"
	case strings.Contains(digits, "_"):
		return fmt.Sprintf("%s is a number in YAML 1.1 and text in YAML 1.2: write %s, or put it in quotes", n.Value,
			strings.ReplaceAll(n.Value, "_", ""))
	}
	return ""
}

// overlong reports whether n is a hexadecimal, octal or binary number that is read as text because
// it has more than 64 bits.
func overlong(n *yaml.Node) bool {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	digits := strings.ToLower(strings.TrimLeft(n.Value, "+-"))
	if n.Kind != yaml.ScalarNode || n.Style&quoted != 0 || n.ShortTag() != "!!str" || len(digits) < 3 || digits[0] != '0' ||
		!strings.Contains("xob", digits[1:2]) {
		return false
	}
	_, ok := new(big.Int).SetString(digits, 0)
	return ok
}

// inexact reports whether a number that is written without an exponent is whole and has more
// digits than a float64 can hold.
func inexact(n *yaml.Node, f float64) bool {
	text := strings.TrimPrefix(n.Value, "+")
	written, ok := new(big.Int).SetString(text, 0)
	if !ok && math.Abs(f) > study.MaxExact && strings.Trim(text, "-.0123456789") == "" {
		decimal, valid := new(big.Rat).SetString(text)
		return valid && decimal.Cmp(new(big.Rat).SetFloat64(f)) != 0
	}
	if !ok {
		return false
	}
	parsed, _ := big.NewFloat(f).Int(nil)
	return parsed.Cmp(written) != 0
}

// describe describes a node for a message.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields (a mapping)"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing (null)"
	case "!!bool":
		return "the boolean " + n.Value
	case "!!int", "!!float":
		return "the number " + n.Value
	default:
		return "the text " + strconv.Quote(n.Value)
	}
}

// text decodes a string. Dates count as text, since study files have no dates.
func (d *decoder) text(n *yaml.Node, path string) (string, bool) {
	if n.Kind == yaml.ScalarNode {
		switch n.ShortTag() {
		case "!!str", "!!timestamp", "!!merge":
			return n.Value, true
		case "!!bool", "!!int", "!!float":
			hint := ""
			if d.isJSON && n.ShortTag() == "!!bool" {
				hint = "; if it was y, n, yes, no, on or off, a tool has read that as a boolean: put it in quotes too"
			} else if d.isJSON {
				hint = "; if it was a text such as 1_000 or 0o7, a tool has read that as a number: put it in quotes too"
			}
			d.Add(path, "%s where text must be: put it in quotes, %q%s", describe(n), n.Value, hint)
			return "", false
		case "!!null":
		default:
			d.Add(path, "the tag %s is not known here: leave it out", n.ShortTag())
			return "", false
		}
	}
	d.Add(path, "%s where text must be", describe(n))
	return "", false
}

// float decodes a finite number.
func (d *decoder) float(n *yaml.Node, path string) (float64, bool) {
	if tag := n.ShortTag(); n.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" {
		d.Add(path, "%s where a number must be", describe(n))
		return 0, false
	}
	var f float64
	if err := n.Decode(&f); err != nil {
		d.Add(path, "%s is not a number that a 64-bit float can hold", n.Value)
		return 0, false
	}
	if !study.Finite(f) {
		d.Add(path, "%s is not finite: write a finite number", n.Value)
		return 0, false
	}
	return f + 0, true
}

// exactly is float, and refuses a whole number with digits that would be lost.
func (d *decoder) exactly(n *yaml.Node, path string) (float64, bool) {
	f, ok := d.float(n, path)
	if ok && inexact(n, f) {
		d.Add(path, "%s has more digits than a 64-bit float can hold: beyond ±%d, write a rounded number such as %.4g", n.Value, study.MaxExact,
			f)
		return 0, false
	}
	return f, ok
}

// integer decodes a whole number between low and high; 1e3 is accepted.
func (d *decoder) integer(n *yaml.Node, path string, low, high float64) (float64, bool) {
	f, ok := d.float(n, path)
	if !ok {
		return 0, false
	}
	if f != math.Trunc(f) {
		d.Add(path, "%s is not a whole number: write one such as 8", n.Value)
		return 0, false
	}
	if f < low || f >= high {
		d.Add(path, "%s is too far from 0: write one such as 8", n.Value)
		return 0, false
	}
	return f, true
}

// unsigned decodes a whole number from 0 to 2^64-1 exactly.
func (d *decoder) unsigned(n *yaml.Node, v reflect.Value, path string) {
	var u uint64
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" && n.Decode(&u) == nil {
		v.SetUint(u)
		return
	}
	d.Add(path, "%s where a whole number from 0 to %d must be", describe(n), uint64(math.MaxUint64))
}

// duration decodes numbers with units.
func (d *decoder) duration(n *yaml.Node, v reflect.Value, path string) {
	var parsed study.Duration
	if n.Kind != yaml.ScalarNode {
		d.Add(path, "%s where a duration such as 90s, 10m or 1h30m must be", describe(n))
		return
	}
	if err := parsed.UnmarshalText([]byte(n.Value)); err != nil {
		d.Add(path, "%s", err)
		return
	}
	v.SetInt(int64(parsed))
}
