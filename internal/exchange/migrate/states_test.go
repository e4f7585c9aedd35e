package migrate

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Only completed trials are results, in the columns and the words of each tool that the docs name. The files
// have the columns that the tools write: MLflow's download of its page and search_runs, Ax's summarize,
// nnictl trial ls and experiment export, Ray's get_dataframe and tune list-trials, the CSV of Katib's page,
// what the docs export from SMAC3, Keras Tuner, Syne Tune, Hyperopt and SageMaker, Vizier's TrialStatus, and so on.
func TestStatesOfOtherTools(t *testing.T) {
	spec := specOf(t, "loss", "name: lr, type: float, min: 0, max: 1")
	left := func(place, column, state string) string {
		return place + ": its " + column + " is " + state + ": only completed trials have a value"
	}
	const good = "0.5: map[lr:0.1]"
	for name, want := range map[string][]string{
		"mlflow-ui.csv": {good, left("line 3", "status", "FAILED"), left("line 4", "status", "KILLED"), left("line 5", "status", "RUNNING"),
			left("line 6", "status", "SCHEDULED")},
		"mlflow-search.csv": {good, left("line 3", "status", "FAILED")},
		"ax.csv": {good, left("line 3", "trial_status", "ABANDONED"), left("line 4", "trial_status", "EARLY_STOPPED"),
			left("line 5", "trial_status", "FAILED"), left("line 6", "trial_status", "CANDIDATE")},
		"nni-trials.jsonl": {good, left("object 2", "status", "USER_CANCELED"), left("object 3", "status", "EARLY_STOPPED")},
		"nni-export.csv":   {good},
		"ray.csv":          {good, left("line 3", "done", "False")},
		"ray-list.csv":     {good, left("line 3", "status", "ERROR"), left("line 4", "status", "PAUSED")},
		"katib-ui.csv": {good, left("line 3", "status", "EarlyStopped"), left("line 4", "status", "Killed"),
			left("line 5", "status", "MetricsUnavailable")},
		"smac.jsonl": {good, left("object 2", "status", "CRASHED"), left("object 3", "status", "1")},
		"vizier.jsonl": {good, "0.6: map[lr:0.4]", left("object 2", "status", "TrialStatus.STOPPING"),
			left("object 3", "infeasible", "true")},
		"keras-tuner.jsonl": {good, left("object 2", "status", "INVALID")},
		"hyperopt.jsonl":    {good, left("object 2", "status", "fail")},
		"syne-tune.csv":     {good, left("line 3", "st_status", "InProgress")},
		"sagemaker.jsonl": {good, left("object 2", "trainingjobstatus", "Stopped"),
			left("object 3", "trainingjobstatus", "Deleting")},
		"phase.csv": {`cannot be imported: line 3: phase is "crashed", and the column is not read, though all its texts look like states of ` +
			`trials: name it state if they are, or remove it`},
	} {
		content, err := os.ReadFile(filepath.Join("testdata", "tables", "states", name))
		if err != nil {
			t.Fatal(err)
		}
		read := CSV
		if filepath.Ext(name) == ".jsonl" {
			read = JSON
		}
		if diff := cmp.Diff(want, points(read(bytes.NewReader(content), spec))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Every word of the docs' table is read as the table says, in any spelling.
func TestStatesOfTheDocs(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "migrate", "import-export.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(content), "| tool | column | a result | left out |\n| --- | --- | --- | --- |\n")
	if !ok {
		t.Fatal("the docs have no table of states")
	}
	quoted := func(cell string) (words []string) {
		for i, part := range strings.Split(cell, "`") {
			if i%2 == 1 {
				words = append(words, part)
			}
		}
		return words
	}
	rows := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		rows++
		cells := strings.Split(line, "|")
		for _, column := range quoted(cells[2]) {
			if !isState(column) {
				t.Errorf("the column %s is not read: %s", column, line)
				continue
			}
			for _, word := range quoted(cells[3]) {
				if !completed(column, word) {
					t.Errorf("%s of %s is left out: %s", word, column, line)
				}
			}
			for _, word := range quoted(cells[4]) {
				if completed(column, word) {
					t.Errorf("%s of %s is a result: %s", word, column, line)
				}
				if strings.Contains(letters(column), "stat") && !slices.Contains(otherWords, stateWord(word)) {
					t.Errorf("%s is not known in a column of another name: %s", word, line)
				}
			}
		}
	}
	if rows < 10 {
		t.Errorf("the table has %d rows", rows)
	}
}

// A column that nobody reads, and whose texts are all states, is refused in every format; one that can be
// anything else is not.
func TestUnreadStates(t *testing.T) {
	spec := specOf(t, "loss", "name: x, type: float, min: 0, max: 9")
	const refused = `cannot be imported: %: outcome is "failed", and the column is not read, though all its texts look like states of ` +
		`trials: name it state if they are, or remove it`
	type row struct {
		X       float64 `parquet:"x"`
		Loss    float64 `parquet:"loss"`
		Outcome string  `parquet:"outcome"`
	}
	parquet := func(outcomes ...string) []string {
		var rows []row
		for _, one := range outcomes {
			rows = append(rows, row{1, 2, one})
		}
		return points(Parquet(written(t, rows), spec))
	}
	both := []string{"2: map[x:1]", "2: map[x:1]"}
	for name, c := range map[string]struct{ got, want []string }{
		"CSV": {points(CSV(strings.NewReader("x,loss,outcome\n1,2,done\n1,2,failed\n"), spec)),
			[]string{strings.Replace(refused, "%", "line 3", 1)}},
		"JSON": {points(JSON(strings.NewReader(`{"x":1,"loss":2,"outcome":"failed"}{"x":1,"loss":2}`), spec)),
			[]string{strings.Replace(refused, "%", "object 1", 1)}},
		"Parquet":    {parquet("", "failed"), []string{strings.Replace(refused, "%", "row 2", 1)}},
		"all done":   {parquet("done", "Completed"), both},
		"free texts": {parquet("failed", "it took "+strings.Repeat("long ", 100)), both},
		"a kind":     {points(CSV(strings.NewReader("x,loss,outcome\n1,2,running\n1,2,cycling\n"), spec)), both},
		"a label": {points(CSV(strings.NewReader("state,x,loss,label:outcome\nCOMPLETED,1,2,failed\nCOMPLETED,1,2,failed\n"), spec)),
			both},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
