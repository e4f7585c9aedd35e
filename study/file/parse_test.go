package file_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

// knownAlgorithms stands for the registry of optimisers.
func knownAlgorithms() map[string]file.AlgorithmCheck {
	return map[string]file.AlgorithmCheck{
		"random": nil,
		"hebo":   func(map[string]any) error { return nil },
		"gp": func(settings map[string]any) error {
			var errs []error
			if n, ok := settings["draws"].(int64); ok && n < 1 {
				errs = append(errs, &file.SettingError{Name: "draws", Message: fmt.Sprintf("%d is not accepted; want at least 1", n)})
			}
			if f, ok := settings["fantasies"].(string); ok && f != "believer" {
				errs = append(errs, &file.SettingError{Name: "fantasies", Message: fmt.Sprintf("%q is not accepted; want believer, draws, none", f)})
			}
			if _, ok := settings["fantasis"]; ok {
				errs = append(errs, &file.SettingError{Name: "fantasis", Known: []string{"draws", "fantasies"}})
			}
			if len(errs) == 0 {
				return nil
			}
			return fmt.Errorf("algorithm gp: %w", errors.Join(errs...))
		},
	}
}

// knownStoppers returns a rule that takes a reduction above 1.
func knownStoppers() map[string]file.StoppingCheck {
	return map[string]file.StoppingCheck{"median": nil, file.DefaultRule: nil, "asha": func(e *study.EarlyStopping) error {
		var problems []error
		for name, value := range e.Settings {
			if known := []string{"minSteps", "reduction"}; !slices.Contains(known, name) {
				problems = append(problems, &file.SettingError{Name: name, Known: known})
			} else if name == "reduction" && value.(int64) < 2 {
				problems = append(problems, &file.SettingError{Name: name, Message: "is below 2"})
			}
		}
		return errors.Join(problems...)
	}}
}

// parseFile parses a file of testdata.
func parseFile(t testing.TB, path string, opts ...file.Option) (*study.Study, error) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file.Parse(text, opts...)
}

// TestBadFiles compares the problems of every file in testdata/bad with those listed
// beside it.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no bad files: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			want, err := os.ReadFile(strings.TrimSuffix(path, ".yaml") + ".want")
			if err != nil {
				t.Fatal(err)
			}
			_, err = parseFile(t, path, file.WithAlgorithms(knownAlgorithms()), file.WithEarlyStopping(knownStoppers()),
				file.WithSeveralObjectives([]string{"random"}), file.WithLimits([]string{"random"}), file.WithEarlier([]string{"hebo"}),
				file.WithForecast([]string{"hebo", "gp"}))
			var problems *study.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("error %v, want *Problems", err)
			}
			if diff := cmp.Diff(string(want), problems.Error()+"\n"); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGoodFiles checks that every file of testdata/good is accepted, and read back
// equal from its canonical JSON.
func TestGoodFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no good files: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s, err := parseFile(t, path, file.WithAlgorithms(knownAlgorithms()), file.WithEarlyStopping(knownStoppers()),
				file.WithSeveralObjectives([]string{"random"}), file.WithLimits([]string{"random"}))
			if err != nil {
				t.Fatal(err)
			}
			mustRoundTrip(t, s)
		})
	}
}

// mustRoundTrip checks that canonical JSON preserves the whole study, for Parse and for
// encoding/json.
func mustRoundTrip(t interface {
	Helper()
	Fatalf(string, ...any)
}, s *study.Study) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	parsed, err := file.Parse(text)
	if err != nil {
		t.Fatalf("canonical JSON is refused: %v\n%s", err, text)
	}
	if diff := cmp.Diff(s, parsed); diff != "" {
		t.Fatalf("Parse of canonical JSON (-want +got):\n%s", diff)
	}
	var decoded study.Study
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatalf("unmarshal: %v", err)
	}
	if diff := cmp.Diff(s, &decoded); diff != "" {
		t.Fatalf("json.Unmarshal of canonical JSON (-want +got):\n%s", diff)
	}
}

const minimal = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: minimal}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  budget: {maxTrials: 10}
  trial: {command: [train]}
`

// The rule for early stopping has a default, of which nothing else is said.
func TestDefaultRule(t *testing.T) {
	s, err := parseFile(t, "testdata/good/stopping-default.yaml", file.WithEarlyStopping(knownStoppers()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&study.EarlyStopping{Name: "model", Metric: "validation"}, s.Spec.EarlyStopping); diff != "" {
		t.Errorf("the rule (-want +got):\n%s", diff)
	}
}

// TestDefaults checks the defaults of a minimal study file.
func TestDefaults(t *testing.T) {
	got, err := file.Parse([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	zero, one, lost, none := 0.0, 1.0, 2, 0
	want := &study.Study{
		APIVersion: study.APIVersion,
		Kind:       study.Kind,
		Metadata:   study.Metadata{Name: "minimal"},
		Spec: study.Spec{
			Objective:   study.Objective{Metric: "loss", Direction: study.Minimize, Take: study.TakeLast},
			Parameters:  []study.Parameter{{Name: "x", Type: study.Float, Min: &zero, Max: &one, Scale: study.Linear}},
			Algorithm:   study.Algorithm{Name: "hebo", Wait: new(study.DefaultWait), FallbackAfter: new(study.DefaultFallbackAfter)},
			Budget:      study.Budget{MaxTrials: 10},
			Parallelism: 1,
			Pool:        "default",
			Trial: study.TrialTemplate{
				Command: []string{"train"}, Mode: study.ModeProcess, Grace: study.DefaultGrace,
				Retries: study.Retries{Lost: &lost, Timeout: &none, Failed: &none},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	other, err := file.Parse([]byte(minimal), file.WithDefaultAlgorithm("random"))
	if err != nil || other.Spec.Algorithm.Name != "random" {
		t.Errorf("with another default: %v, %v", other, err)
	}
}

// TestDatesAreText checks that what YAML 1.1 read as a date or a boolean stays the text
// as written.
func TestDatesAreText(t *testing.T) {
	s := mustParse(t, strings.Replace(minimal, "command: [train]", "command: [train, 2026-01-01, yes], env: {D: 2026-01-01}", 1))
	if diff := cmp.Diff([]string{"train", "2026-01-01", "yes"}, s.Spec.Trial.Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if got := s.Spec.Trial.Env["D"]; got != "2026-01-01" {
		t.Errorf("env D = %s", got)
	}
}

// TestHostileInput checks that malicious input is refused with a message.
func TestHostileInput(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ","))
	}
	settings := func(value string) string {
		return strings.Replace(minimal, "  budget", "  algorithm: {settings: {a: "+value+"}}\n  budget", 1)
	}
	for name, test := range map[string]struct{ input, want string }{
		"alias bomb": {strings.Replace(settings("*j"), "apiVersion", bomb+"apiVersion", 1), "too many values below long keys, aliases included"},
		"alias of a text": {strings.Replace(settings("["+strings.Repeat("*t,", 4000)+"]"), "apiVersion",
			"t: &t "+strings.Repeat("x", 500_000)+"\napiVersion", 1), "at most 1048576 bytes, aliases included"},
		"alias of a key": {strings.Replace(settings("["+strings.Repeat("{*t : 1},", 4000)+"]"), "apiVersion",
			"t: &t "+strings.Repeat("x", 500_000)+"\napiVersion", 1), "at most 1048576 bytes, aliases included"},
		"long key": {settings("{" + strings.Repeat("x", 500_000) + ": [" + strings.Repeat("1,", 1000) + "]}"),
			"too many values below long keys"},
		"alias circle": {settings("&a [*a]"), "nested at most 100 deep"},
		"deep":         {settings(strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), "nested at most 100 deep"},
		"large":        {minimal + strings.Repeat("#", file.MaxSize), "larger than 1048576 bytes"},
		"control":      {"\x00\x01", "not YAML"},
		"alias key":    {minimal + "? [a]\n: b\n", "a list as a key"},
		"nothing":      {"", "empty"},
		"null":         {"~", "nothing (null) where fields must be"},
		"text":         {"hello", `the text "hello" where fields must be`},
		"unknown name": {"a: *b", "unknown anchor"},
		"a tab":        {"metadata:\n\tname: x\n", "2:1: not YAML: the line is indented with a tab: YAML wants spaces"},
		"a tab within": {"metadata:\n  \tname: x\n  - y\n", "not YAML: the line is indented with a tab"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := file.Parse([]byte(test.input))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// TestProblemsNameTheFile checks how problems of a file are printed.
func TestProblemsNameTheFile(t *testing.T) {
	bad := []byte(strings.Replace(minimal, "max: 1", "max: -1", 1))
	want := "a/study.yaml:6:52: spec.parameters[0].max: -1 is below min, 0: the range is empty"
	if _, err := file.Parse(bad, file.WithFile("a/study.yaml")); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func mustParse(t *testing.T, text string) *study.Study {
	t.Helper()
	s, err := file.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A study may be bounded by trials, by time, or by both.
func TestBudget(t *testing.T) {
	const text = `{apiVersion: fantasia.dev/v1, kind: Study, metadata: {name: a}, spec: {objective: {metric: l, direction: minimize},
  parameters: [{name: x, type: float, min: 0, max: 1}], budget: %s, trial: {command: ["true"]}}}`
	for budget, want := range map[string]string{
		"{maxDuration: 2h}": "", "{maxTrials: 5}": "", "{maxTrials: 5, maxDuration: 2h}": "",
		"{}":                              "spec.budget.maxTrials: is missing: how many trials to run, or how long in maxDuration, or",
		"{maxDuration: 2h, maxTrials: 0}": "spec.budget.maxTrials: 0 is not accepted",
		"{maxDuration: 0s}":               "spec.budget.maxTrials: is missing",
	} {
		s, err := file.Parse([]byte(fmt.Sprintf(text, budget)))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", budget, err)
		case want == "" && s.Spec.Budget.OfTime() != (budget == "{maxDuration: 2h}"):
			t.Errorf("%s: of time is %v", budget, s.Spec.Budget.OfTime())
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: the error is %v, want %q", budget, err, want)
		}
	}
}
