package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two runs of lgp: from 4 above the minimum to 1 above it; and from 2 to 2, since its third
// trial is beyond its budget of two. Then two of another model.
const runs = `{"spec":{"optimizer":"lgp","objective":"f","trials":3,"seed":1},"result":{"evaluations":[{"trial":1,"outcome":"completed","loss":4},{"trial":2,"outcome":"failed"},{"trial":3,"outcome":"completed","loss":1}]}}
{"spec":{"optimizer":"lgp","objective":"f","trials":2,"seed":2},"result":{"evaluations":[{"trial":2,"outcome":"completed","loss":2},{"trial":1,"outcome":"completed","loss":8},{"trial":3,"outcome":"completed","loss":0}]}}
{"spec":{"optimizer":"lgp","settings":{"model":"plain"},"objective":"f","trials":3,"seed":1},"result":{"evaluations":[{"trial":1,"outcome":"completed","loss":4},{"trial":3,"outcome":"completed","loss":0}]}}
{"spec":{"optimizer":"lgp","settings":{"model":"plain"},"objective":"f","trials":3,"seed":2},"result":{"evaluations":[{"trial":1,"outcome":"completed","loss":4},{"trial":3,"outcome":"completed","loss":2}]}}
`

// saved writes a file of runs.
func saved(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTable(t *testing.T) {
	const head = "| function | lgp | plain |\n| --- | ---: | ---: |\n"
	for _, c := range []struct {
		measure string
		after   int
		want    string
	}{
		// The gaps are 3/4 and 0, and 1 and 1/2; the standard error of two is half their difference. Of
		// two pairs no test can tell.
		{"gap", 0, "| `f` | **0.375 ± 0.375** (2) | **0.750 ± 0.250** (2) |\n"},
		// The regrets are 1 and 2, and 0 and 2.
		{"regret", 0, "| `f` | **1.500 ± 0.500** (2) | **1.000 ± 1.000** (2) |\n"},
		// After two evaluations they are 4 and 2, and 4 and 4.
		{"regret", 2, "| `f` | **3.000 ± 1.000** (2) | **4.000 ± 0.000** (2) |\n"},
	} {
		m := measures()[c.measure]
		kept, err := read(saved(t, runs), "model", c.after, m)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		kept.write(&out, m)
		if out.String() != head+c.want {
			t.Errorf("%s after %d: printed\n%swant\n%s", c.measure, c.after, &out, head+c.want)
		}
	}
	if _, err := read(saved(t, "{"), "model", 0, measures()["gap"]); err == nil {
		t.Error("a line that is no run is accepted")
	}
}

// Of six seeds, a is better than b in each, which has the two-sided probability 1/32; c is
// worse than a in five, by the smallest difference better in the other: 2/32.
func TestWhatIsBold(t *testing.T) {
	tab := table{"f": row{"a": {}, "b": {}, "c": {}}}
	for seed := range uint64(6) {
		v := float64(seed)
		tab["f"]["a"][seed], tab["f"]["b"][seed], tab["f"]["c"][seed] = v, v+1+0.1*v, v+1+0.1*v
	}
	tab["f"]["c"][5] = 4.9
	var out strings.Builder
	tab.write(&out, measures()["regret"])
	var bold []string
	for i, cell := range strings.Split(strings.Split(out.String(), "\n")[2], "|")[2:5] {
		if strings.Contains(cell, "**") {
			bold = append(bold, string("abc"[i]))
		}
	}
	if fmt.Sprint(bold) != "[a c]" {
		t.Errorf("%v are bold, want a and c:\n%s", bold, &out)
	}
}

// The differences of lgp to plain are 1 and 0.
func TestPaired(t *testing.T) {
	kept, err := read(saved(t, runs), "model", 0, measures()["regret"])
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	kept.writePaired(&out, "lgp")
	if want := "| function | plain |\n| --- | ---: |\n| `f` | 0.500 ± 0.500 |\n"; out.String() != want {
		t.Errorf("printed\n%swant\n%s", &out, want)
	}
}
