package migrate

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

// repeated is a text that is repeated without end.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// after is a text that has no end.
func after(begin, again string) io.Reader {
	return io.MultiReader(strings.NewReader(begin), &repeated{text: strings.Repeat(again, 10_000)})
}

// Files without an end, and those that become large in memory, are refused before they take it.
func TestHostileTables(t *testing.T) {
	const most = 2 << 30 // what is allocated in all; what is held at once is a fraction of it
	spec := specOf(t, "loss", "name: x, type: categorical, values: [a, b]")
	type row struct {
		X     string  `parquet:"x,dict"`
		Value float64 `parquet:"value"`
	}
	// Each of 50,000 rows is a few bits, which stand for the same text of 20 kB.
	dictionary := written(t, slices.Repeat([]row{{strings.Repeat("a", 20_000), 1}}, 50_000))
	if len(dictionary) > 1<<20 {
		t.Fatalf("the file has %d bytes", len(dictionary))
	}
	type read = func(io.Reader, *study.Spec) ([]Evaluated, []Skipped, error)
	journal := func(r io.Reader, _ *study.Spec) ([]Evaluated, []Skipped, error) {
		_, err := readJournal(r, "")
		return nil, nil, err
	}
	for name, c := range map[string]struct {
		read read
		from io.Reader
		want string
	}{
		"a table without an end": {CSV, after("x,value\n", "a,1\n"+strings.Repeat(" ", 1000)+"\n"), "larger than 256 MiB"},
		"a cell without an end":  {CSV, after("x,value\na,1\na,", "\x00"), "line 3 has a cell that is larger than 1 MiB"},
		"a quoted cell without an end": {CSV, after("x,value\na,1\n\"a\nb\",1\n \"", "a\n,\"\""),
			"line 5 has a cell that is larger than 1 MiB"},
		"a header without an end": {CSV, after("", "\x00"), "line 1 has a cell that is larger than 1 MiB"},
		"a text of Parquet": {func(io.Reader, *study.Spec) ([]Evaluated, []Skipped, error) {
			return Parquet(written(t, []row{{"a", 1}, {strings.Repeat("a", 2<<20), 1}}), spec)
		}, nil, "a text of row 2 is larger than 1 MiB"},
		"a table of too many trials": {CSV, io.LimitReader(after("x,value\n", "a,\n"), 8+3*(maxTrials+1)), "more than 1000000 trials"},
		"a header of many columns": {CSV, strings.NewReader("x,value" + strings.Repeat(",", 1<<25)),
			"line 1 has 33554434 cells; want at most 100000"},
		"a line of many cells":     {CSV, strings.NewReader("x,value\na,1\n" + strings.Repeat(";", 1<<25)), "line 3 has 33554433 cells"},
		"a list without an end":    {JSON, after("[{}", ",{}"), "more than 1000000 trials"},
		"an object without an end": {JSON, after(`{"x":[{}`, ",{}"), "larger than 4 MiB"},
		"a text without an end":    {JSON, after(`[{"x":"`, "a"), "larger than 4 MiB"},
		"spaces without an end":    {JSON, after("", " "), "larger than 4 MiB"},
		"brackets without an end":  {JSON, after("", "["), "exceeded max depth"},
		"a dictionary that is repeated": {func(io.Reader, *study.Spec) ([]Evaluated, []Skipped, error) { return Parquet(dictionary, spec) }, nil,
			"the texts of all rows are larger than 256 MiB"},
		"a journal without lines": {journal, after("", "a"), "line 1: it is larger than 4 MiB"},
		"a cut list":              {JSON, strings.NewReader(`[{"x": "a", "value": 1}`), "after object 1: unexpected EOF"},
		"a cut object":            {JSON, strings.NewReader(`{"x": "a", "value"`), "after object 0: unexpected EOF"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		trials, _, err := c.read(c.from, spec)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), c.want) || len(trials) > 0 {
			t.Errorf("%s: %d trials, %v; want %q", name, len(trials), err, c.want)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > most {
			t.Errorf("%s: allocated %d MiB", name, used>>20)
		}
	}
}

// What is no database, and has no end, is not read for ever either.
func TestHostileDatabases(t *testing.T) {
	link := filepath.Join(t.TempDir(), "optuna.db")
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/dev/zero", link, t.TempDir()} {
		if _, err := Optuna(t.Context(), path, OptunaOptions{}); !errors.Is(err, ErrSource) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A cell of 200 MB is refused while it is read: it takes a few MiB.
func TestLargeCell(t *testing.T) {
	spec := specOf(t, "loss", "name: x, type: float, min: 0, max: 9")
	text := io.MultiReader(strings.NewReader("x,loss,note\n1,2,\"\n\"\n1,2,"), io.LimitReader(&repeated{text: "a"}, 200e6),
		strings.NewReader("\n"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := CSV(text, spec)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "line 4 has a cell that is larger than 1 MiB; want at most that") {
		t.Errorf("a large cell: %v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("allocated %d MiB", used>>20)
	}
}
