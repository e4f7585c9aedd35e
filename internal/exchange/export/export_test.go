package export_test

import (
	"bytes"
	"encoding/csv"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/exchange/export"
	"github.com/fantasia-hpo/fantasia/internal/exchange/migrate"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// The names of some parameters are also columns, and one is a metric.
var spec = &study.Spec{
	Objective: study.Objective{Metric: "loss", Direction: study.Minimize},
	Parameters: []study.Parameter{
		{Name: "x", Type: study.Float, Min: new(-1e9), Max: new(1e9)},
		{Name: "worker", Type: study.Int, Min: new(-4503599627370496.0), Max: new(4503599627370495.0)},
		{Name: "value", Type: study.Categorical, Values: []any{"a,b", "\"c\"", "ü\n"}},
		{Name: "loss", Type: study.Ordinal, Values: []any{int64(1), 2.5}},
		{Name: "flag", Type: study.Bool, When: map[string][]any{"value": {"a,b"}}},
		{Name: "any", Type: study.Categorical, Values: []any{"1x", int64(7), true}},
	},
}

func TestColumns(t *testing.T) {
	start := time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("", 3600))
	table := export.Of(spec, view.List{
		{
			Trial: 1, State: study.TrialCompleted, Value: new(2.0), Attempts: 2, Worker: "w", Source: "model", Staleness: 3,
			Times:   view.Times{Created: start, Started: start.Add(1500 * time.Millisecond), Ended: start.Add(4 * time.Second)},
			Metrics: map[string]float64{"loss": 2, "size": 1e7}, Failure: &messaging.Failure{Reason: "exit", Message: "of an attempt before"},
			Parameters: view.Parameters{"x": 1e-7, "worker": 12.0, "value": "a,b", "loss": 1.0, "flag": true, "any": 7.0},
		},
		{Trial: 2, State: study.TrialFailed, Failure: &messaging.Failure{Reason: "exit", Message: "boom,\nand more"}},
		{Trial: 3, State: study.TrialPruned, Value: new(9.0), Stopped: &view.Stopped{Reason: "below the median"}},
	})
	var out bytes.Buffer
	if err := table.CSV(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"trial", "state", "value", "attempts", "worker", "source", "staleness", "seconds", "created", "started", "ended", "failure", "message",
			"value:loss", "metric:loss", "metric:size",
			"parameter:x", "parameter:worker", "parameter:value", "parameter:loss", "parameter:flag", "parameter:any"},
		{"1", "COMPLETED", "2", "2", "w", "model", "3", "2.5", "2026-03-01T12:00:00.000Z", "2026-03-01T12:00:01.500Z", "2026-03-01T12:00:04.000Z",
			"", "",
			"2", "2", "10000000", "1e-07", "12", "a,b", "1", "true", "7"},
		{"2", "FAILED", "", "0", "", "", "0", "", "", "", "", "exit", "exit: boom,: and more", "", "", "", "", "", "", "", "", ""},
		{"3", "PRUNED", "9", "0", "", "", "0", "", "", "", "", "", "below the median", "9", "", "", "", "", "", "", "", ""},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("CSV (-want +got):\n%s", diff)
	}

	out.Reset()
	if err := table.JSONLines(&out); err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(out.Bytes(), []byte("\n"))
	line := `{"trial":1,"state":"COMPLETED","value":2,"attempts":2,"worker":"w","source":"model","staleness":3,"seconds":2.5,` +
		`"created":"2026-03-01T12:00:00.000Z","started":"2026-03-01T12:00:01.500Z","ended":"2026-03-01T12:00:04.000Z","failure":null,"message":null,` +
		`"value:loss":2,"metric:loss":2,"metric:size":10000000,"parameter:x":1e-7,"parameter:worker":12,"parameter:value":"a,b","parameter:loss":1,"parameter:flag":true,"parameter:any":"7"}`
	if string(first) != line {
		t.Errorf("JSON is %s, want %s", first, line)
	}

	out.Reset()
	if err := table.Parquet(&out); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range file.Schema().Columns() {
		names = append(names, c...)
	}
	if diff := cmp.Diff(want[0], names); diff != "" {
		t.Errorf("Parquet's columns (-want +got):\n%s", diff)
	}
}

// Where trials ran has columns if anything is known of it, and a file with them can be read again.
func TestPlaces(t *testing.T) {
	var out bytes.Buffer
	trials := []view.Trial{
		{Trial: 1, State: study.TrialCompleted, Value: new(2.0), Site: messaging.Site{Job: "4711_2", Node: "n17", Devices: "0,1"},
			Parameters: view.Parameters{"x": 0.5}},
		{Trial: 2, State: study.TrialFailed, Parameters: view.Parameters{"x": 0.25}},
	}
	own := &study.Spec{Objective: study.Objective{Metric: "loss"},
		Parameters: []study.Parameter{{Name: "x", Type: study.Float, Min: new(0.0), Max: new(1.0)}}}
	if err := export.Of(own, view.List(trials)).CSV(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{",message,job,node,devices,value:loss,parameter:x\n", `,4711_2,n17,"0,1",2,0.5` + "\n", ",,,,,0.25\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	read, skipped, err := migrate.CSV(&out, own)
	if err != nil || len(read) != 1 || len(read[0].Metrics) > 1 {
		t.Errorf("read again: %+v, %v, %v", read, skipped, err)
	}
}

// A file that is cut off or is something else is refused with a reason.
func TestBadParquet(t *testing.T) {
	var out bytes.Buffer
	if err := export.Of(spec, view.List{{Trial: 1, State: study.TrialCompleted, Value: new(1.0)}}).Parquet(&out); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"empty": nil, "text": []byte("x,value\n1,2\n"), "cut off": out.Bytes()[:out.Len()-20]} {
		if _, _, err := migrate.Parquet(content, spec); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A text that a spreadsheet could run begins with an apostrophe, wherever it splits the line.
// Numbers, and files for everything else, stay as they are.
func TestSpreadsheet(t *testing.T) {
	texts := []any{"=HYPERLINK(\"http://x\")", "+1", "-1", "@SUM(1)", "\t=1", "＝1", "a;=1", "a\t+1", "a,-1", "\"=1\"", "a\n=1", "plain-text",
		"a=b", "", "x@y"}
	escaped := []string{"'=HYPERLINK(\"http://x\")", "'+1", "'-1", "'@SUM(1)", "'\t'=1", "'＝1", "a;'=1", "a\t'+1", "a,'-1", "\"'=1\"",
		"a\n'=1", "plain-text", "a=b", "", "x@y"}
	spec := &study.Spec{Parameters: []study.Parameter{{Name: "c", Type: study.Categorical, Values: texts}, {Name: "n", Type: study.Float}}}
	var trials []view.Trial
	for _, text := range texts {
		trials = append(trials, view.Trial{Trial: 1, Parameters: view.Parameters{"c": text, "n": -1.5}})
	}
	table := export.Of(spec, view.List(trials))
	for i, write := range []func(io.Writer) error{table.CSV, table.SpreadsheetCSV} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for k, row := range rows[1:] {
			want := []string{texts[k].(string), escaped[k]}[i]
			if got := row[len(row)-2:]; got[0] != want || got[1] != "-1.5" {
				t.Errorf("%q is %q, want %q and -1.5", texts[k], got, want)
			}
		}
	}
}

// A table keeps no rows, so that one of very many trials takes no memory beside them.
func TestTableTakesNoMemory(t *testing.T) {
	spec := &study.Spec{Parameters: []study.Parameter{{Name: "x", Type: study.Float}}}
	allocated := func(trials int) uint64 {
		list := make([]view.Trial, trials)
		for i := range list {
			list[i] = view.Trial{Trial: i + 1, Parameters: map[string]any{"x": 0.5}, Metrics: map[string]float64{"loss": 1}}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		table := export.Of(spec, view.List(list))
		runtime.ReadMemStats(&after)
		if err := table.CSV(io.Discard); err != nil {
			t.Fatal(err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	const room = 64 << 10 // for what the runtime and other goroutines allocate meanwhile
	if few, many := allocated(10), allocated(10_000); many > few+room {
		t.Errorf("the table of 10,000 trials allocates %d bytes, that of 10 trials %d", many, few)
	}
}

// The table of a study with a cost has a column for it: each trial has there what it reported.
func TestCostColumn(t *testing.T) {
	priced := &study.Spec{Objective: study.Objective{Metric: "loss"}, Cost: &study.Cost{Metric: "dollars"}}
	table := export.Of(priced, view.List{
		{Trial: 1, State: study.TrialCompleted, Value: new(2.0), Cost: new(7.5)},
		{Trial: 2, State: study.TrialCompleted, Value: new(3.0), Expected: 4},
	})
	var out bytes.Buffer
	if err := table.CSV(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range rows {
		got = append(got, row[len(row)-2])
	}
	if diff := cmp.Diff([]string{"cost", "7.5", ""}, got); diff != "" {
		t.Errorf("the column of the cost (-want +got):\n%s", diff)
	}
}
