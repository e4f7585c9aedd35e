package study_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

// Several objectives cannot change, but a reference can.
func TestCompatibleObjectives(t *testing.T) {
	text, err := os.ReadFile("file/testdata/good/objectives.yaml")
	if err != nil {
		t.Fatal(err)
	}
	old, err := file.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*study.Spec)
		want   []string
	}{
		"nothing":   {func(*study.Spec) {}, nil},
		"reference": {func(s *study.Spec) { s.Several[0].Reference = nil; s.Several[1].Reference = new(9.0) }, nil},
		"metric":    {func(s *study.Spec) { s.Several[1].Metric = "size" }, []string{`spec.objectives[1].metric was "latency/ms" and is "size"`}},
		"direction": {func(s *study.Spec) { s.Several[0].Direction = study.Minimize },
			[]string{`spec.objectives[0].direction was "maximize" and is "minimize"`}},
		"take": {func(s *study.Spec) { s.Several[0].Take = study.TakeLast }, []string{`spec.objectives[0].take was "best" and is "last"`}},
		"only one": {func(s *study.Spec) { s.Objective, s.Several = s.Several[0], nil }, []string{
			`spec.objectives was ["accuracy","latency/ms"] and is ["accuracy"]`,
		}},
	} {
		changed := *old
		changed.Spec.Several = slices.Clone(old.Spec.Several)
		test.change(&changed.Spec)
		if diff := cmp.Diff(test.want, study.Compatible(old, &changed)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCompatible changes one thing of a study file at a time.
func TestCompatible(t *testing.T) {
	text, err := os.ReadFile("file/testdata/good/digits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		from, to string
		want     []string
	}{
		"nothing":     {"", "", nil},
		"budget":      {"maxTrials: 64", "maxTrials: 128", nil},
		"less budget": {"maxTrials: 64", "maxTrials: 32", nil},
		"parallelism": {"parallelism: 8", "parallelism: 4", nil},
		"pool":        {"pool: default", "pool: gpu", nil},
		"goal":        {"goal: 0.01", "goal: 0.02", nil},
		"timeout":     {"timeout: 10m", "timeout: 20m", nil},
		"grace":       {"grace: 30s", "grace: 1s", nil},
		"retries":     {"failed: 0", "failed: 1", nil},
		"workdir":     {"workdir: .", "workdir: /srv", nil},
		"env":         {"DATA: /data", "DATA: /mnt", nil},
		"spelling":    {"max: 1e-1", "max: 0.1", nil},
		"default":     {", scale: log}", ", scale: log, when: {}}", nil},
		"range":       {"max: 1e-1", "max: 1", nil},
		"values":      {"values: [adam, sgd]", "values: [adam, lion, sgd, rmsprop]", nil},
		"prior":       {"max: 1e-1", "max: 1e-1, prior: {mean: 1e-3, sd: 1}", nil},
		"no initial":  {"  initial: [{", "  # initial: [{", nil},

		"name": {"name: digits", "name: letters", []string{`metadata.name was "digits" and is "letters"`}},
		"metric": {"metric: error", "metric: loss", []string{`spec.objective.metric was "error" and is "loss"`,
			`spec.trial.metrics was {"pattern":"val_err=(?P<error>\\S+)"} and is {"pattern":"val_err=(?P<loss>\\S+)"}`}},
		"direction": {"minimize", "maximize", []string{`spec.objective.direction was "minimize" and is "maximize"`}},
		"take":      {"take: last", "take: best", []string{`spec.objective.take was "last" and is "best"`}},
		"scale":     {", scale: log", "", []string{`spec.parameters.learning_rate.scale was "log" and is "linear"`}},
		"step":      {"max: 256", "max: 256, step: 16", []string{`spec.parameters.hidden.step was null and is 16`}},
		"type": {"type: int, min: 16", "type: float, min: 16", []string{`spec.parameters.hidden.type was "int" and is "float"`,
			`spec.initial was [{"hidden":64,"learning_rate":0.001}] and is [{"hidden":64.0,"learning_rate":0.001}]`}},
		"order": {"values: [adam, sgd]", "values: [sgd, adam]",
			[]string{`the order of spec.parameters.solver.values was ["adam","sgd"] and is ["sgd","adam"]`}},
		"when": {"when: {solver: [sgd]}", "when: {solver: [adam, sgd]}",
			[]string{`spec.parameters.momentum.when was {"solver":["sgd"]} and is {"solver":["adam","sgd"]}`}},
		"constraint": {"<= 10", "<= 9", []string{`spec.constraints was ["hidden * learning_rate <= 10"] and is ["hidden * learning_rate <= 9"]`}},
		"initial": {"learning_rate: 1e-3", "learning_rate: 1e-2",
			[]string{`spec.initial was [{"hidden":64,"learning_rate":0.001}] and is [{"hidden":64,"learning_rate":0.01}]`}},
		"algorithm": {"name: hebo", "name: gp", []string{`spec.algorithm.name was "hebo" and is "gp"`}},
		"seed":      {"seed: 7", "seed: 8", []string{`spec.algorithm.seed was 7 and is 8`}},
		"settings":  {"settings: {}", "settings: {a: 1.0}", []string{`spec.algorithm.settings was null and is {"a":1.0}`}},
		"stopping": {"  budget:", "  earlyStopping: {name: asha, settings: {reduction: 3}}\n  budget:",
			[]string{`spec.earlyStopping was null and is {"name":"asha","metric":"error","settings":{"reduction":3}}`}},
		"command": {"train.py", "tune.py",
			[]string{`spec.trial.command was ["python","train.py","--lr=${learning_rate}","${args}"] and is ["python","tune.py","--lr=${learning_rate}","${args}"]`}},
		"renamed": {"name: momentum", "name: mass", []string{
			`spec.parameters: momentum was {"name":"momentum","type":"float","min":0,"max":0.99,"scale":"linear","when":{"solver":["sgd"]}} and is gone`,
			`spec.parameters: mass is new: {"name":"mass","type":"float","min":0,"max":0.99,"scale":"linear","when":{"solver":["sgd"]}}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before := string(text)
			after := strings.Replace(before, test.from, test.to, 1)
			if name == "metric" {
				after = strings.Replace(after, "(?P<error>", "(?P<loss>", 1)
			}
			if diff := cmp.Diff(test.want, study.Compatible(mustParse(t, before), mustParse(t, after))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNewSpace holds which changes make another space.
func TestNewSpace(t *testing.T) {
	before := mustParse(t, minimal)
	for change, want := range map[[2]string]bool{
		{"", ""}:                                            false,
		{"max: 1}", "max: 1.0, scale: linear}"}:             false,
		{"maxTrials: 10", "maxTrials: 11"}:                  false,
		{"max: 1}", "max: 2}"}:                              true,
		{"max: 1}", "max: 1, prior: {mean: 0.5, sd: 0.1}}"}: true,
		{"max: 1}]", "max: 1}]\n  initial: [{x: 0.5}]"}:     true,
	} {
		after := mustParse(t, strings.Replace(minimal, change[0], change[1], 1))
		if got := study.NewSpace(before, after); got != want {
			t.Errorf("%q to %q: a new space is %v, want %v", change[0], change[1], got, want)
		}
	}
}

// TestCompatibleOrder checks that the order of parameters counts, since it is the order
// of an optimiser's dimensions.
func TestCompatibleOrder(t *testing.T) {
	a := mustParse(t, strings.Replace(minimal, "max: 1}", "max: 1}, {name: y, type: bool}", 1))
	b := mustParse(t, strings.Replace(minimal, "[{name: x", "[{name: y, type: bool}, {name: x", 1))
	want := []string{`the order of spec.parameters was ["x","y"] and is ["y","x"]`}
	if diff := cmp.Diff(want, study.Compatible(a, b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// In a study that learns its parameters, everything about them may change.
func TestCompatibleLearnedParameters(t *testing.T) {
	learned := strings.Replace(strings.Replace(minimal, "  trial: {command: [train]}\n", "", 1), "  parameters:",
		"  learnParameters: true\n  parameters:", 1)
	a := mustParse(t, learned)
	b := mustParse(t, strings.Replace(learned, "[{name: x, type: float, min: 0, max: 1}]",
		"[{name: z, type: bool}, {name: x, type: int, min: 1, max: 9, when: {z: [true]}}]", 1))
	if differences := study.Compatible(a, b); len(differences) > 0 || !study.NewSpace(a, b) {
		t.Errorf("differences: %q", differences)
	}
	fixed := mustParse(t, strings.Replace(learned, "  learnParameters: true\n", "", 1))
	if diff := cmp.Diff([]string{"spec.learnParameters was true and is false"}, study.Compatible(a, fixed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err := file.Parse([]byte(strings.Replace(minimal, "  parameters:", "  learnParameters: true\n  parameters:", 1)))
	if _, err := file.Parse([]byte(strings.Replace(learned, "learnParameters: true", "learnParameters: 1", 1))); err == nil ||
		!strings.Contains(err.Error(), "the number 1 where true or false must be") {
		t.Errorf("a number: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "spec.learnParameters: is only for studies whose trials clients of the API evaluate") {
		t.Errorf("with a command: %v", err)
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

func mustParse(t *testing.T, text string) *study.Study {
	t.Helper()
	s, err := file.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
