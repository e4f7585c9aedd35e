package migrate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

// stored returns the paths of a test's files, which Optuna wrote: a journal, and in tests with Python also
// a file of SQLite with the same studies.
func stored(name string) (paths []string) {
	for _, ending := range endings {
		paths = append(paths, filepath.Join("testdata", name+ending))
	}
	return paths
}

// optunaStudyOf imports a study from a storage in testdata, and returns it with its notes.
func optunaStudyOf(t *testing.T, path, name string, initial int) (*study.Study, string) {
	t.Helper()
	r, err := Optuna(t.Context(), path, OptunaOptions{Python: python, Study: name, Initial: initial})
	if err != nil {
		t.Fatal(err)
	}
	s, err := file.Parse(r.Study)
	if err != nil {
		t.Fatalf("%v in\n%s", err, r.Study)
	}
	return s, strings.Join(r.Notes, "\n")
}

// testdata/ordinary.db and ordinary.log were made by Optuna itself: testdata/make_ordinary.py says
// what is in them, and what is wanted here follows from that.
func TestOptunaOrdinary(t *testing.T) {
	for _, path := range stored("ordinary") {
		s, notes := optunaStudyOf(t, path, "ordinary", 3)
		args := ParameterName("args")
		units := func(layer int, from int64) study.Parameter {
			p := study.Parameter{Name: fmt.Sprintf("layers[%d].units", layer), Type: study.Int, Min: new(8.0), Max: new(64.0), Step: new(8.0),
				Scale: study.Linear}
			for n := from; from > 1 && n <= 3; n++ {
				p.When = map[string][]any{"n_layers": append(p.When["n_layers"], n)}
			}
			return p
		}
		want := []study.Parameter{
			{Name: "data set", Type: study.Fixed, Value: "digits"},
			{Name: "seed", Type: study.Fixed, Value: int64(7)},
			{Name: "model/lr", Type: study.Float, Min: new(1e-5), Max: new(1.0), Scale: study.Log},
			{Name: "_drop", Type: study.Float, Min: new(0.0), Max: new(0.5), Step: new(0.1), Scale: study.Linear},
			{Name: "C", Type: study.Float, Min: new(0.0), Max: new(1.0), Scale: study.Linear},
			{Name: "c", Type: study.Int, Min: new(1.0), Max: new(64.0), Scale: study.Log},
			{Name: args, Type: study.Categorical, Values: []any{"None", true, int64(1), 0.5, `"1"`, "x"}},
			{Name: "n_layers", Type: study.Int, Min: new(1.0), Max: new(3.0), Scale: study.Linear},
			units(0, 1), units(1, 2), units(2, 3),
			{Name: "solver", Type: study.Categorical, Values: []any{"adam", "sgd"}},
			{Name: "momentum", Type: study.Float, Min: new(0.0), Max: new(0.99), Scale: study.Linear, When: map[string][]any{"solver": {"sgd"}}},
		}
		if diff := cmp.Diff(want, s.Spec.Parameters); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		for _, piece := range []string{
			`"args" is called ` + args, "model/lr: its range changed", "momentum: ", "n_layers is one of 2, 3",
			"1 of 25 (its state is PRUNED", "1 of 25 (its state is FAIL", "1 of 25 (its state is RUNNING", "2 of 25 (its value is infinite",
		} {
			if !strings.Contains(notes, piece) {
				t.Errorf("%s: the notes lack %q:\n%s", path, piece, notes)
			}
		}

		trials, skipped, err := OptunaTrials(t.Context(), path, OptunaOptions{Python: python, Study: "ordinary"}, &s.Spec)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, s := range skipped {
			left = append(left, s.Place+": "+s.Why)
		}
		const state, value = ": only completed trials have a value", "its value is infinite or NaN: want a finite number"
		if diff := cmp.Diff([]string{"trial 3: its state is PRUNED" + state, "trial 4: its state is FAIL" + state,
			"trial 5: " + value, "trial 8: " + value, "trial 24: its state is RUNNING" + state}, left); diff != "" {
			t.Errorf("%s: left out: %s", path, diff)
		}
		if len(trials) != 20 {
			t.Errorf("%s: %d trials, want 20 of 25", path, len(trials))
		}
		best := 1.0
		for _, trial := range trials {
			best = min(best, trial.Values.First())
			if trial.Values.First() != trial.Point["C"] || trial.Point["data set"] != "digits" || trial.Point["seed"] != int64(7) {
				t.Errorf("%s: %s: %v at %v, want the value of C", path, trial.Place, trial.Values.First(), trial.Point)
			}
			if diff := cmp.Diff(map[string]float64{"user_attrs_seconds": 1.5}, trial.Metrics); diff != "" {
				t.Errorf("%s: %s: metrics (-want +got):\n%s", path, trial.Place, diff)
			}
		}
		if len(s.Spec.Initial) != 3 || s.Spec.Initial[0]["C"] != best {
			t.Errorf("%s: the initial points are %v, want the best first, with C=%v", path, s.Spec.Initial, best)
		}
		if _, err := Optuna(t.Context(), path, OptunaOptions{Python: python}); err == nil ||
			!strings.Contains(err.Error(), `name one of "ordinary", "two goals"`) {
			t.Errorf("%s: no name: %v", path, err)
		}
	}
}

// In the same files, "two goals" has two trials with x and 1 as the values.
func TestOptunaOfSeveralObjectives(t *testing.T) {
	for _, path := range stored("ordinary") {
		s, notes := optunaStudyOf(t, path, "two goals", 5)
		want := []study.Objective{
			{Metric: "values_0", Direction: study.Minimize, Take: study.TakeLast},
			{Metric: "values_1", Direction: study.Maximize, Take: study.TakeLast},
		}
		if diff := cmp.Diff(want, s.Spec.Several); diff != "" {
			t.Errorf("%s: objectives (-want +got):\n%s", path, diff)
		}
		if piece := `It reports its objectives as "values_0", "values_1"`; !strings.Contains(notes, piece) {
			t.Errorf("%s: the notes lack %q:\n%s", path, piece, notes)
		}
		trials, skipped, err := OptunaTrials(t.Context(), path, OptunaOptions{Python: python, Study: "two goals"}, &s.Spec)
		if err != nil || len(skipped) > 0 || len(trials) != 2 {
			t.Fatalf("%s: read %v, left out %v, error %v", path, trials, skipped, err)
		}
		for _, trial := range trials {
			if diff := cmp.Diff(study.Values{trial.Point["x"].(float64), 1}, trial.Values); diff != "" {
				t.Errorf("%s: values (-want +got):\n%s", path, diff)
			}
		}
		better := trials[0]
		if trials[1].Values[0] < better.Values[0] {
			better = trials[1]
		}
		if len(s.Spec.Initial) != 2 || s.Spec.Initial[0]["x"] != better.Point["x"] {
			t.Errorf("%s: the initial points are %v, want the trial on the front first, %v", path, s.Spec.Initial, better.Point)
		}
		s.Spec.Several[1].Direction = study.Minimize
		if _, _, err := OptunaTrials(t.Context(), path, OptunaOptions{Python: python, Study: "two goals"}, &s.Spec); err == nil ||
			!strings.Contains(err.Error(), "Optuna's study is to minimize, maximize, this one to minimize, minimize") {
			t.Errorf("%s: other directions: %v", path, err)
		}
	}
}

// A trial with too few values, or with one that is not finite, is left out. Of others, those that no
// one dominates are the best, then those that only they dominate.
func TestOptunaRanksSeveralObjectives(t *testing.T) {
	const float = `{"name": "FloatDistribution", "attributes": {"step": null, "low": 0, "high": 10, "log": false}}`
	text := `{"op_code": 0, "worker_id": "w", "study_name": "s", "directions": [1, 2]}` + "\n"
	for i, values := range []string{"[5, 1]", "[1, 2]", "[4, 6]", "[1]", "[null, 1]", "[Infinity, 9]", "[3, 5]", "[2, 1]"} {
		text += fmt.Sprintf(
			`{"op_code": 4, "worker_id": "w", "study_id": 0, "state": 1, "value": null, "values": %s, "distributions": {"x": %q}, "params": {"x": %d}}`+"\n", values, float, i)
	}
	path := filepath.Join(t.TempDir(), "journal.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := optunaStudyOf(t, path, "s", 4)
	// 1, 6 and 2 are the front; without them, only 7 is not dominated.
	want := []map[string]any{{"x": 1.0}, {"x": 6.0}, {"x": 2.0}, {"x": 7.0}}
	if diff := cmp.Diff(want, s.Spec.Initial); diff != "" {
		t.Errorf("initial points (-want +got):\n%s", diff)
	}
	trials, skipped, err := OptunaTrials(t.Context(), path, OptunaOptions{}, &s.Spec)
	if err != nil || len(trials) != 5 {
		t.Errorf("read %v, error %v", trials, err)
	}
	infinite := "its value is infinite or NaN: want a finite number"
	if diff := cmp.Diff([]Skipped{{"trial 3", "it completed without a value"}, {"trial 4", infinite}, {"trial 5", infinite}},
		skipped); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
}

// journalOf writes a journal of one study with the given lines after it.
func journalOf(t testing.TB, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.log")
	text := `{"op_code": 0, "worker_id": "w", "study_name": "s", "directions": [2]}` + "\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// addedWhole is the line of a journal for a trial that was added whole.
func addedWhole(value, name, distribution, internal string) string {
	return fmt.Sprintf(
		`{"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": null, "state": 1, "value": %s, "values": null, "distributions": {%q: %q}, "params": {%q: %s}}`,
		value, name, distribution, name, internal)
}

func TestOptunaRefusesByName(t *testing.T) {
	float, category := `{"name": "FloatDistribution", "attributes": {"step": null, "low": 0, "high": 1, "log": false}}`,
		`{"name": "CategoricalDistribution", "attributes": {"choices": ["a", "b"]}}`
	for _, tt := range []struct {
		lines []string
		want  string
	}{
		{[]string{addedWhole("1", "k", float, "0.5"), addedWhole("2", "k", category, "1")},
			`parameter "k": it changed from float to categorical`},
		{[]string{addedWhole("1", "k", float, "0.5"),
			addedWhole("2", "k", strings.Replace(strings.Replace(float, "false", "true", 1), `"low": 0`, `"low": 0.1`, 1), "0.5")},
			`parameter "k": it changed from float to log float`},
		{[]string{addedWhole("1", "k", strings.Replace(float, `"high": 1`, `"high": Infinity`, 1), "0.5")}, `parameter "k": +Inf is not finite`},
		{[]string{addedWhole("1", "k", strings.Replace(float, "Float", "Complex", 1), "0.5")},
			`parameter "k": the distribution "ComplexDistribution" is unknown`},
		{[]string{addedWhole("1", "k", "{", "0.5")}, `parameter "k": unexpected`},
		{[]string{`{"op_code": 10}`}, "not a journal of Optuna: line 2: op_code is 10: want 0 to 9"},
		{[]string{`{"op_code": 4, "study_id": 0, "state": 7}`}, "line 2: state is 7: want 0 to 4"},
		{[]string{`{"op_code": 4`}, "not a journal of Optuna: line 2: unexpected"},
		{[]string{`{"op_code": 1, "study_id": 0}`}, "the storage has no studies"},
		{[]string{`{"op_code": 1, "study_id": 7}`}, `no trial of study "s" has parameters`},
	} {
		_, err := Optuna(t.Context(), journalOf(t, tt.lines...), OptunaOptions{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "spec.") {
			t.Errorf("%s: error %v, want one with %q", tt.lines, err, tt.want)
		}
	}
}

// A trial that was added whole, one that another process ended first, and a last line that was
// not written to its end.
func TestOptunaJournal(t *testing.T) {
	float := `{"name": "FloatDistribution", "attributes": {"step": 0.25, "low": 0.0, "high": 1.0, "log": false}}`
	path := journalOf(t, addedWhole("1.5", "x", float, "0.5"),
		`{"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": null, "state": 4}`,
		fmt.Sprintf(`{"op_code": 5, "worker_id": "w", "trial_id": 1, "param_name": "x", "param_value_internal": 0.75, "distribution": %q}`,
			float),
		`{"op_code": 6, "worker_id": "w", "trial_id": 1, "state": 1, "values": [2.5]}`,
		`{"op_code": 6, "worker_id": "v", "trial_id": 1, "state": 3, "values": null}`,
		`{"op_code": 0, "worker_id": "v", "study_name": "s", "directions": [1]}`,
		addedWhole("NaN", "x", strings.Replace(float, `"high": 1.0`, `"high": 2.0`, 1), "0.5"))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"op_code": 4, "wor`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s, notes := optunaStudyOf(t, path, "", 1)
	if p := s.Spec.Parameters[0]; s.Spec.Objective.Direction != study.Maximize || *p.Max != 2 || *p.Step != 0.25 ||
		!strings.Contains(notes, "1 of 3 (its value is infinite or NaN") {
		t.Errorf("%+v, notes %s", s.Spec, notes)
	}
	if diff := cmp.Diff([]map[string]any{{"x": 0.75}}, s.Spec.Initial); diff != "" {
		t.Error("the best trial:", diff)
	}
	trials, skipped, err := OptunaTrials(t.Context(), path, OptunaOptions{}, &s.Spec)
	want := []Evaluated{{Place: "trial 0", Point: study.Point{"x": 0.5}, Values: study.Values{1.5}},
		{Place: "trial 1", Point: study.Point{"x": 0.75}, Values: study.Values{2.5}}}
	if diff := cmp.Diff(want, trials); diff != "" || err != nil || len(skipped) != 1 {
		t.Errorf("%v, %v left out: %s", err, skipped, diff)
	}
}

// The values of choices are told apart as a study writes them.
func TestOptunaChoices(t *testing.T) {
	const category = `{"name": "CategoricalDistribution", "attributes": {"choices": [null, "None", 1, 1.0, "1", true, "true", [1, 2], 9007199254740993, NaN]}}`
	s, _ := optunaStudyOf(t, journalOf(t, addedWhole("1", "k", category, "7")), "", 1)
	want := []any{"None", `"None"`, int64(1), "1.0", `"1"`, true, `"true"`, "[1,2]", "9007199254740993", "NaN"}
	if diff := cmp.Diff(want, s.Spec.Parameters[0].Values); diff != "" || s.Spec.Initial[0]["k"] != "[1,2]" {
		t.Errorf("initial %v: %s", s.Spec.Initial, diff)
	}
}

// A parameter gets a condition only where the values of one other parameter tell exactly which
// trials have it: here from trials (name, value) of one int and one other parameter y.
func TestOptunaConditions(t *testing.T) {
	const whole = `{"name": "IntDistribution", "attributes": {"step": 1, "low": 1, "high": 9, "log": false}}`
	for _, tt := range []struct {
		with, without []int
		want          []any
	}{
		{[]int{8, 9}, []int{7, 1}, []any{int64(8), int64(9)}},
		{[]int{7, 9}, []int{6}, []any{int64(7), int64(8), int64(9)}},
		{[]int{4}, []int{3, 5}, []any{int64(4)}},
		{[]int{8, 9}, []int{5}, nil}, // 6 and 7 were never seen
		{[]int{3, 6}, []int{2, 4, 7}, nil},
		{[]int{5, 9}, []int{5, 4}, nil}, // 5 was seen with it and without
	} {
		var lines []string
		for i, n := range append(append([]int{}, tt.with...), tt.without...) {
			line := addedWhole("1", "n", whole, fmt.Sprint(n))
			if i < len(tt.with) {
				line = strings.Replace(strings.Replace(line, `"params": {`, `"params": {"y": 1, `, 1), `"distributions": {`,
					fmt.Sprintf(`"distributions": {"y": %q, `, whole), 1)
			}
			lines = append(lines, line)
		}
		s, notes := optunaStudyOf(t, journalOf(t, lines...), "", 0)
		var want map[string][]any
		if tt.want != nil {
			want = map[string][]any{"n": tt.want}
		}
		for _, p := range s.Spec.Parameters {
			if diff := cmp.Diff(want, p.When); p.Name == "y" && diff != "" {
				t.Errorf("with %v, without %v: %s", tt.with, tt.without, diff)
			}
		}
		if said := strings.Contains(notes, "y: only "); said == (want != nil) {
			t.Errorf("with %v, without %v: notes %s", tt.with, tt.without, notes)
		}
	}
}

// User attributes that are finite numbers are metrics, whatever else a trial has; the last value of
// a name counts, and there are at most as many as a trial keeps.
func TestOptunaAttributes(t *testing.T) {
	trial := &optunaTrial{}
	for _, a := range []struct{ name, json string }{
		{"seconds", "1.5"}, {"epochs", "12"}, {"large", "1e400"}, {"loss", "NaN"}, {"host", `"a"`}, {"flag", "true"}, {"list", "[1]"},
		{"text", `"1"`}, {"twice", "1"}, {"twice", "2"}, {"lost", "1"}, {"lost", "null"}, {"", "1"}, {strings.Repeat("n", 201), "1"},
		{"val/acc", "-0.5"},
	} {
		var value any
		if err := unmarshalPython([]byte(a.json), &value); err != nil {
			t.Fatal(err)
		}
		trial.attribute(a.name, value)
	}
	want := map[string]float64{"user_attrs_seconds": 1.5, "user_attrs_epochs": 12, "user_attrs_twice": 2, "user_attrs_val/acc": -0.5}
	if diff := cmp.Diff(want, trial.metrics()); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	for n := range 1000 {
		trial.attribute(fmt.Sprint(n), json.Number("1"))
	}
	if got := len(trial.metrics()); got != maxAttributes {
		t.Errorf("%d metrics, want %d", got, maxAttributes)
	}
}
