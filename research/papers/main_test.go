package main

import (
	"strings"
	"testing"
)

// Two runs of lgp: from 4 above the minimum to 1 above it; and from 2 to 2, since its third
// trial is beyond its budget of two. Then two of another model.
const runs = `{"spec":{"optimizer":"lgp","objective":"f","trials":3},"result":{"evaluations":[{"trial":1,"outcome":"completed","loss":4},{"trial":2,"outcome":"failed"},{"trial":3,"outcome":"completed","loss":1}]}}
{"spec":{"optimizer":"lgp","objective":"f","trials":2},"result":{"evaluations":[{"trial":2,"outcome":"completed","loss":2},{"trial":1,"outcome":"completed","loss":8},{"trial":3,"outcome":"completed","loss":0}]}}
{"spec":{"optimizer":"lgp","settings":{"model":"plain"},"objective":"f","trials":3},"result":{"evaluations":[{"trial":1,"outcome":"completed","loss":4},{"trial":3,"outcome":"completed","loss":0}]}}
{"spec":{"optimizer":"lgp","settings":{"model":"plain"},"objective":"f","trials":3},"result":{"evaluations":[{"trial":1,"outcome":"completed","loss":4},{"trial":3,"outcome":"completed","loss":2}]}}
`

func TestTable(t *testing.T) {
	kept, err := read(strings.NewReader(runs), "model", gap)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	kept.write(&out)
	// The gaps are 3/4 and 0, and 1 and 1/2; the standard error of two is half their difference.
	want := "| function | lgp | plain |\n| --- | ---: | ---: |\n| `f` | 0.375 ± 0.375 (2) | 0.750 ± 0.250 (2) |\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", &out, want)
	}
	if kept, err = read(strings.NewReader(runs), "model", regret); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	kept.write(&out)
	// The regrets are 1 and 2, and 0 and 2.
	want = "| function | lgp | plain |\n| --- | ---: | ---: |\n| `f` | 1.500 ± 0.500 (2) | 1.000 ± 1.000 (2) |\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", &out, want)
	}
	if _, err := read(strings.NewReader("{"), "model", gap); err == nil {
		t.Error("a line that is no run is accepted")
	}
}
