package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/internal/app/standalone"
)

// Trials of a file become trials of a study on a real server: once, however often they are
// imported. Those that do not fit are listed.
func TestImportTrials(t *testing.T) {
	dir := t.TempDir()
	stdin, parent := io.Pipe()
	output, stdout := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(t.Context(), []string{"serve", "--state", filepath.Join(dir, "state"), "--exit-with-parent"},
			cli.Options{Stdin: stdin, Stdout: stdout, Stderr: io.Discard, Version: "test"})
	}()
	defer func() {
		if err := parent.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	}()
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var at standalone.Address
	if err := json.Unmarshal(line, &at); err != nil {
		t.Fatal(err)
	}
	run := func(code int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if args[0] != "import" { // which needs no server
			args = append([]string{"--server", at.URL}, args...)
		}
		got := cli.Main(t.Context(), args, cli.Options{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr})
		if got != code {
			t.Fatalf("%q: exit code %d, want %d: %s%s", args, got, code, &stdout, &stderr)
		}
		return stdout.String() + stderr.String()
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run(cli.ExitOK, "study", "create", "-f", write("study.yaml", `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: fresh}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}, {name: kind, type: categorical, values: [a, b]}]
  budget: {maxTrials: 5}
`))
	// A trial whose constraint is not known is outside of the limit, however often it is imported.
	storage := filepath.Join("..", "..", "exchange", "migrate", "testdata", "constraints.log")
	text, _, _ := strings.Cut(run(cli.ExitOK, "import", "optuna", storage, "--study", "set"), "note: ")
	run(cli.ExitOK, "study", "create", "-f", write("set.yaml", text))
	for range 2 {
		run(cli.ExitOK, "study", "import-trials", "set", storage, "--format", "optuna", "--optuna-study", "set")
	}
	const memory, size = "constraints_peak_memory_7dbb9376 <= 0", "constraints_size <= 0"
	if diff := cmp.Diff([][]string{{memory}, nil, {memory}, nil, {size}, {memory, size}},
		exceeded(t, run(cli.ExitOK, "trial", "list", "set", "-o", "json"))); diff != "" {
		t.Errorf("the limits that imported trials are outside of (-want +got):\n%s", diff)
	}
	table := write("old.csv", "x,kind,loss\n0.5,a,3\n0.25,b,1\n7,b,0\n0.5,a,3\n")
	if got := run(cli.ExitOK, "study", "import-trials", "fresh", table, "--dry-run"); !strings.Contains(got,
		"3 trials would be added to study fresh, 1 left out") {
		t.Errorf("a dry run says %q", got)
	}
	for range 2 {
		got := run(cli.ExitOK, "study", "import-trials", "fresh", table)
		if !strings.Contains(got, "3 trials are now in study fresh, 1 left out\n  line 4: parameter x is \"7\": want a number from 0 to 1") {
			t.Errorf("the import says %q", got)
		}
	}
	var study struct {
		Best   struct{ Value float64 }
		Trials struct{ Completed, Added int }
	}
	if err := json.Unmarshal([]byte(run(cli.ExitOK, "study", "get", "fresh", "-o", "json")), &study); err != nil {
		t.Fatal(err)
	}
	if study.Best.Value != 1 || study.Trials.Completed != 3 || study.Trials.Added != 3 {
		t.Errorf("the study has %+v, want three added trials, the best with 1", study)
	}
	// What is printed of one study can be imported into another.
	printed := run(cli.ExitOK, "trial", "list", "fresh", "-o", "json")
	var named []struct{ Objectives []string }
	if err := json.Unmarshal([]byte(printed), &named); err != nil || len(named) != 3 || !slices.Equal(named[0].Objectives, []string{"loss"}) {
		t.Errorf("%v: the list does not say of which metric the values are: %s", err, printed)
	}
	list := write("list.json", printed)
	if got := run(cli.ExitOK, "study", "import-trials", "fresh", list, "--dry-run", "-o", "json"); !strings.Contains(got, `"added": 3`) {
		t.Errorf("the printed trials: %s", got)
	}
	// What is exported of one study can be imported into another, and again into itself.
	for _, ending := range []string{"csv", "jsonl", "parquet"} {
		path := filepath.Join(dir, "exported."+ending)
		run(cli.ExitOK, "study", "export", "fresh", "-o", path)
		if got := run(cli.ExitOK, "study", "import-trials", "fresh", path); !strings.Contains(got,
			"3 trials are now in study fresh, 0 left out") {
			t.Errorf("%s: %s", ending, got)
		}
	}
	if got := run(cli.ExitOK, "study", "get", "fresh", "-o", "json"); !strings.Contains(got, `"completed": 3`) {
		t.Errorf("importing what was exported changed the study: %s", got)
	}
	for want, args := range map[string][]string{
		"the format of old.txt is unknown: want --format csv, json, parquet or optuna": {"fresh", "old.txt"},
		`--format is "xml"; want csv, json, parquet or optuna`:                         {"fresh", table, "--format", "xml"},
		"none.csv: cannot be imported: open":                                           {"fresh", filepath.Join(dir, "none.csv")},
		"no column is the objective":                                                   {"fresh", write("bad.csv", "x,kind\n1,a\n")},
	} {
		if got := run(cli.ExitUsage, append([]string{"study", "import-trials"}, args...)...); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %q", args, got, want)
		}
	}
	// A database that cannot be reached is no mistake of the command, and its password is not shown.
	const database = "mysql://me:s3cret@127.0.0.1:1/optuna"
	for _, got := range []string{
		run(cli.ExitError, "study", "import-trials", "fresh", database),
		run(cli.ExitError, "import", "optuna", database),
		run(cli.ExitUsage, "study", "import-trials", "fresh", database, "--format", "csv"),
	} {
		if !strings.Contains(got, "mysql://me@127.0.0.1:1/optuna") || strings.Contains(got, "s3cret") {
			t.Errorf("%s: %s", database, got)
		}
	}
	if got := run(cli.ExitFailed, "study", "import-trials", "fresh", write("none.json", `{"value": 1}`)); !strings.Contains(got,
		"no trial could be imported") {
		t.Errorf("a file without a usable trial: %s", got)
	}
}

// exceeded returns the limits that each completed trial of a list is outside of.
func exceeded(t *testing.T, list string) (all [][]string) {
	t.Helper()
	var trials []struct {
		State    string
		Exceeded []string
	}
	if err := json.Unmarshal([]byte(list), &trials); err != nil {
		t.Fatal(err)
	}
	for _, one := range trials {
		if slices.Sort(one.Exceeded); one.State == "COMPLETED" {
			all = append(all, one.Exceeded)
		}
	}
	return all
}
