package report

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// written is a metrics file and what was read of it.
type written struct {
	t        *testing.T
	path     string
	file     *File
	values   []float64 // of "loss"
	warnings []string
}

func newWritten(t *testing.T) *written {
	w := &written{t: t, path: filepath.Join(t.TempDir(), "m.jsonl")}
	w.file = NewFile("m.jsonl", func() (*os.File, error) { return os.Open(w.path) },
		func(r Report) { w.values = append(w.values, r.Metrics["loss"]) }, func(text string) { w.warnings = append(w.warnings, text) })
	return w
}

// poll writes a text, and reads as Follow does.
func (w *written) poll(text string, flags int) {
	w.t.Helper()
	f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_CREATE|flags, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		w.t.Fatal(err)
	}
	_ = w.file.readNew()
	w.file.parse(false)
}

// However a file is written, each of its whole objects is a report, and people learn of the rest.
func TestAMetricsFileMayHaveLines(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []float64
		warning    string // a part of the only one
		err        string // a part of the error
	}{
		{"an object", `{"loss": 0.5}`, []float64{0.5}, "", ""},
		{"on lines", "\n{\n  \"loss\": 0.5,\n  \"a\": {\"loss\": 1}\n}\n", []float64{0.5}, "", ""},
		{"lines", "{\"loss\": 0.5}\n{\"loss\": 0.3}\r\n\n{\"loss\": 0.2}", []float64{0.5, 0.3, 0.2}, "", ""},
		{"a byte-order mark", "\ufeff{\"loss\": 0.5}", []float64{0.5}, "", ""},
		{"a mark before each part", "\ufeff{\"loss\": 0.5}\n\ufeff{\"loss\": 0.3}", []float64{0.5, 0.3}, "", ""},
		{"NaN", "{\"loss\": 0.5}\n{\"loss\": NaN}\n", []float64{0.5, math.NaN()}, "", ""},
		{"cut off", "{\"loss\": 0.5}\n{\"loss\": 0.3}\n{\"loss\": 0.", []float64{0.5, 0.3}, `line 3 of metrics.file is not a whole JSON object`, ""},
		{"one that was cut off before others", "{\"loss\": 0.5}\n{\"loss\": 0.\n{\"loss\": 0.3}\n", []float64{0.5, 0.3}, `line 2 of metrics.file`, ""},
		{"foreign text", "{\"loss\": 0.5}\ndone in 3 s\n", []float64{0.5}, `line 2 of metrics.file is not a JSON object, and was not read: "done in 3 s"`, ""},
		{"foreign text between", "{\"loss\": 0.5}\n[1]\n{\"loss\": 0.3}\n", []float64{0.5, 0.3}, `line 2`, ""},
		{"nothing", "", nil, "", "is empty"},
		{"a list", "[{\"loss\": 0.5}]", nil, "", `line 1 is not a JSON object of metrics: it starts with "[{`},
		{"only a part", `{"loss": 0.2`, nil, "", "not a whole JSON object"},
		{"a line of text", "loss: 0.2\n{\"loss\": 0.5}", nil, "", `it starts with "loss: 0.2"`},
		{"a large one", `{"loss": ` + strings.Repeat(" ", maxObject), nil, "", "more than 1048576 bytes"},
	} {
		for _, size := range []int{len(tt.text) + 1, 7} {
			if size < 10 && len(tt.text) > 1000 {
				continue
			}
			w := newWritten(t)
			for part := range slices.Chunk([]byte(tt.text), size) {
				w.poll(string(part), os.O_APPEND)
			}
			if tt.text == "" {
				w.poll("", os.O_APPEND)
			}
			err := w.file.Finish()
			if diff := cmp.Diff(tt.want, w.values, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("%s, %d bytes at once: (-want +got):\n%s", tt.name, size, diff)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: the error is %v, want %q", tt.name, err, tt.err)
			}
			if (len(w.warnings) == 1) != (tt.warning != "") || len(w.warnings) == 1 && !strings.Contains(w.warnings[0], tt.warning) {
				t.Errorf("%s: the warnings are %q, want %q", tt.name, w.warnings, tt.warning)
			}
		}
	}
}

// A program may write its only object again and again: only the last one counts. Lines are reports as
// soon as a second one is there.
func TestAMetricsFileMayBeWrittenAgain(t *testing.T) {
	w := newWritten(t)
	for _, text := range []string{`{"loss": 0.9}`, `{"loss": 0.75}`, `{"loss": 0.5}`, `{"loss": 0.25}`} {
		w.poll(text, os.O_TRUNC)
	}
	if len(w.values) > 0 {
		t.Errorf("%v were reported while the program ran", w.values)
	}
	if err := w.file.Finish(); err != nil || !slices.Equal(w.values, []float64{0.25}) {
		t.Errorf("reported %v, %v", w.values, err)
	}

	w = newWritten(t)
	w.poll("{\"loss\": 0.5}\n", os.O_APPEND)
	w.poll("{\"loss\": 0.3}\n{\"loss\": 0.", os.O_APPEND)
	if !slices.Equal(w.values, []float64{0.5, 0.3}) {
		t.Errorf("reported while the program runs: %v", w.values)
	}
	w.poll("2}\n", os.O_APPEND)
	if err := w.file.Finish(); err != nil || !slices.Equal(w.values, []float64{0.5, 0.3, 0.2}) {
		t.Errorf("reported %v, %v", w.values, err)
	}
}
