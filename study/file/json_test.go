package file_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

// jsonStudy is a study as Python's json.dumps writes it, with the values of a parameter.
const jsonStudy = `{"apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": {"name": "digits"},
	"spec": {"objective": {"metric": "loss", "direction": "minimize"},
	"parameters": [{"name": "x", "type": "categorical", "values": %s}],
	"budget": {"maxTrials": 5}}}`

// JSON is read as JSON: escapes of characters beyond the basic plane, slashes, tabs between
// fields, keys of more than 1,024 characters, and a mark at the beginning of the file.
func TestJSON(t *testing.T) {
	values := []any{"😀", "𠮷野", "a/b", "tab\t", "\u2028", int64(1), 1.5, true, "yes", "020", "9007199254740993", "\ufffd\ud7a3", `\ud83d`}
	escaped := `["\ud83d\ude00", "\uD842\uDFB7野", "a\/b", "tab\t", "\u2028", 1, 1.5, true, "yes", "020", "9007199254740993", "\ufffd\ud7a3", "\\ud83d"]`
	for name, prefix := range map[string]string{"plain": "", "with a mark": "\ufeff", "after spaces": "\r\n\t "} {
		s, err := file.Parse([]byte(prefix + fmt.Sprintf(jsonStudy, escaped)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(values, s.Spec.Parameters[0].Values); diff != "" {
			t.Errorf("%s: values (-want +got):\n%s", name, diff)
		}
	}
	for values, want := range map[string]string{
		`["\uffff", "\\ud83d", "\udc00x"]`:                        "a text has half of a surrogate pair",
		`["\ud83d\ude00", "b",]`:                                  "3:85: not JSON: invalid character ']'",
		`["\ud83d"]`:                                              "3:65: a text has half of a surrogate pair",
		`["é😀", null]`:                                            "3:71: spec.parameters[0].values[1]: ",
		`["a", "b"], "values": ["c"]`:                             "3:76: spec.parameters[0].values: the key \"values\" is here a second time",
		`["a"], "` + longKey + `": 1`:                             "unknown field",
		strings.Repeat("[", 200) + "1" + strings.Repeat("]", 200): "nested at most 100 deep",
	} {
		if _, err := file.Parse(fmt.Appendf(nil, jsonStudy, values)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want …%s…", values, err, want)
		}
	}
}

var longKey = strings.Repeat("k", 2000)

// Numbers are what was written, or refused: integers below 2^53, from which on two may become one
// in JSON and floats, and none that begin with a zero, which YAML 1.1 reads as octal.
func TestNumbersAreExact(t *testing.T) {
	with := func(parameter string) []byte {
		return []byte(strings.Replace(minimal, "max: 1}]", "max: 1}, {name: p, "+parameter+"}]", 1))
	}
	for parameter, want := range map[string]any{
		"type: fixed, value: 9007199254740991":          int64(study.MaxExact),
		"type: fixed, value: -9007199254740991":         int64(-study.MaxExact),
		"type: fixed, value: 0x10":                      int64(16),
		"type: fixed, value: 0o20":                      int64(16),
		"type: fixed, value: 0":                         int64(0),
		"type: float, min: 0, max: 1000000000000000000": nil,
		"type: fixed, value: 0.5":                       0.5,
		"type: fixed, value: '020'":                     "020",
		"type: fixed, value: '1_000'":                   "1_000",
		"type: fixed, value: _1":                        "_1",
		"type: fixed, value: 1e300":                     1e300,
		"type: fixed, value: '0xFFFFFFFFFFFFFFFFF'":     "0xFFFFFFFFFFFFFFFFF",
		"type: fixed, value: 0xg":                       "0xg",
		"type: fixed, value: 9007199254740992.0":        9007199254740992.0,
		"type: fixed, value: 1:30":                      "1:30",
		"type: fixed, value: on":                        "on",
		"type: fixed, value: '18446744073709551615'":    "18446744073709551615",
	} {
		s, err := file.Parse(with(parameter))
		if err != nil {
			t.Errorf("%s: %v", parameter, err)
		} else if got := s.Spec.Parameters[len(s.Spec.Parameters)-1].Value; got != want {
			t.Errorf("%s is read as %#v, want %#v", parameter, got, want)
		}
	}
	for parameter, want := range map[string]string{
		"type: fixed, value: 9007199254740992":                        "9007199254740992 is beyond ±9007199254740991",
		"type: int, min: 0, max: 9007199254740992":                    "9007199254740992 is beyond ±9007199254740991",
		"type: fixed, value: 9007199254740993":                        "9007199254740993 is beyond ±9007199254740991",
		"type: fixed, value: 18446744073709551615":                    "18446744073709551615 is beyond ±9007199254740991",
		"type: fixed, value: -99999999999999999999":                   "-99999999999999999999 is beyond ±9007199254740991",
		"type: categorical, values: [9007199254740993, 5]":            "values[0]: 9007199254740993 is beyond ±9007199254740991",
		"type: int, min: 0, max: 5, when: {x: [1152921504606846977]}": "1152921504606846977 is beyond ±9007199254740991",
		"type: int, min: 9007199254740000, max: 9007199254740993":     "max: 9007199254740993 has more digits",
		"type: int, min: -9007199254740993, max: 0":                   "min: -9007199254740993 has more digits",
		"type: fixed, value: 9007199254740993.0":                      "9007199254740993.0 has more digits",
		"type: float, min: 0, max: 9007199254740993.5":                "9007199254740993.5 has more digits",
		"type: fixed, value: 1_000": "1_000 is a number in YAML 1.1 and text in YAML 1.2: write 1000, or " +
			"put it in quotes",
		"type: int, min: 0, max: 1_000":                        "1_000 is a number in YAML 1.1",
		"type: float, min: 0, max: 1_0.5":                      "1_0.5 is a number in YAML 1.1",
		"type: categorical, values: [0x1_0, 1]":                "0x1_0 is a number in YAML 1.1",
		"type: fixed, value: 0xfFFFFFFFFFFFFFFFF":              "0xfFFFFFFFFFFFFFFFF has more than 64 bits",
		"type: categorical, values: [-0x1FFFFFFFFFFFFFFFF, 1]": "has more than 64 bits",
		"type: fixed, value: 0o7777777777777777777777777":      "has more than 64 bits",
		"type: fixed, value: 0xFFFFFFFFFFFFFFFF":               "0xFFFFFFFFFFFFFFFF is beyond ±9007199254740991",
		"type: fixed, value: 08":                               "08 begins with a zero",
		"type: fixed, value: 09.5":                             "09.5 begins with a zero",
		"type: fixed, value: 020":                              "020 begins with a zero",
		"type: int, min: 0, max: 010":                          "010 begins with a zero",
		"type: categorical, values: [-07, 5]":                  "-07 begins with a zero",
	} {
		if _, err := file.Parse(with(parameter)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", parameter, err, want)
		}
	}
}

// A small file with many problems, long names or aliases has a small error.
func TestErrorsAreBounded(t *testing.T) {
	unknown := &strings.Builder{}
	unknown.WriteString(minimal)
	for i := range 60_000 {
		fmt.Fprintf(unknown, "x%d: 1\n", i)
	}
	settings := func(text string) string {
		return strings.Replace(minimal, "  budget", "  algorithm: {settings: {"+text+"}}\n  budget", 1)
	}
	key := strings.Repeat("k", 430)
	aliases := settings("a: &a [" + strings.Repeat("1,", 1000) + "], " + key + ": [" + strings.Repeat("*a,", 120) + "]")
	values := settings(key + ": [" + strings.Repeat("1,", 120_000) + "]")
	long := strings.Replace(minimal, "  budget", "  "+strings.Repeat("k", 200_000)+": "+strings.Repeat("v", 200_000)+"\n  budget", 1)
	for name, text := range map[string]string{"unknown fields": unknown.String(), "aliases": aliases, "values": values, "a long name": long} {
		_, err := file.Parse([]byte(text))
		if err == nil || len(err.Error()) > 100_000 {
			t.Errorf("%s: an error of %d bytes for a file of %d, want one of at most 100,000", name, len(fmt.Sprint(err)), len(text))
		}
	}
	_, err := file.Parse([]byte(unknown.String()))
	if lines := strings.Split(fmt.Sprint(err), "\n"); len(lines) != 101 || !strings.HasPrefix(lines[100], "and more") {
		t.Errorf("60,000 unknown fields are %d problems, the last %q; want 100, and that there are more", len(lines), lines[len(lines)-1])
	}
	for name, text := range map[string]string{"aliases": aliases, "values": values} {
		allocated := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := file.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "too many values below long keys") {
					b.Fatal(err)
				}
			}
		}).AllocedBytesPerOp()
		if most := int64(1<<20 + 600*len(text)); allocated > most {
			t.Errorf("%s: a file of %d bytes allocates %d, want at most %d", name, len(text), allocated, most)
		}
	}
}

// A tool of YAML 1.1 makes booleans of words. The errors that follow tell how to keep the words.
func TestWordsThatBecameBooleans(t *testing.T) {
	text := func(parameter, initial string) string {
		return `{"apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": {"name": "a"}, "spec": {"objective": {"metric": "loss", "direction": "minimize"},
			"parameters": [` + parameter + `], "initial": [` + initial + `], "budget": {"maxTrials": 1}, "trial": {"command": ["train"]}}}`
	}
	for _, tt := range []struct{ parameter, initial, want string }{
		{`{"name": true, "type": "float", "min": 0, "max": 1}`, ``,
			`the boolean true where text must be: put it in quotes, "true"; if it was y, n, yes, no, on or off`},
		{`{"name": "y", "type": "float", "min": 0, "max": 1}`, `{"true": 0.5}`,
			`there is no such parameter (did you mean "y"? A tool has read y as a boolean: put "y" in quotes)`},
		{`{"name": "p", "type": "categorical", "values": ["on", "off"]}`, `{"p": false}`,
			`false is not accepted; want on, off; put on in quotes`},
		{`{"name": "p", "type": "fixed", "value": "No"}, {"name": "x", "type": "float", "min": 0, "max": 1}`, `{"p": false}`,
			`want No; put No in quotes`},
	} {
		if _, err := file.Parse([]byte(text(tt.parameter, tt.initial))); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %s: %v, want …%s…", tt.parameter, tt.initial, err, tt.want)
		}
	}
	yes := strings.Replace(minimal, "name: x, type: float, min: 0, max: 1", "name: y, type: categorical, values: [on, off, n]", 1)
	if s := mustParse(t, yes); s.Spec.Parameters[0].Name != "y" || s.Spec.Parameters[0].Values[0] != "on" {
		t.Errorf("read as %+v", s.Spec.Parameters[0])
	}
}
