package migrate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/exchange/katib"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

func source(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func imported(t *testing.T, text string) (*Result, *study.Study) {
	t.Helper()
	return importedWith(t, text, KatibOptions{})
}

func importedWith(t *testing.T, text string, o KatibOptions) (*Result, *study.Study) {
	t.Helper()
	r, err := Katib([]byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := file.Parse(r.Study)
	if err != nil {
		t.Fatalf("%v in\n%s", err, r.Study)
	}
	return r, s
}

func TestKatibJob(t *testing.T) {
	r, s := imported(t, source(t, "job.yaml"))
	goal := 0.99
	if diff := cmp.Diff(study.Objective{Metric: "Validation_accuracy", Direction: study.Maximize, Take: study.TakeLast, Goal: &goal},
		s.Spec.Objective); diff != "" {
		t.Error("objective:", diff)
	}
	want := []study.Parameter{
		{Name: "lr", Type: study.Float, Min: new(0.001), Max: new(0.1), Scale: study.Log},
		{Name: "dropout", Type: study.Float, Min: new(0.0), Max: new(0.5), Step: new(0.1), Scale: study.Linear},
		{Name: "layers", Type: study.Int, Min: new(1.0), Max: new(4.0), Scale: study.Linear},
		{Name: "batch", Type: study.Ordinal, Values: []any{16.0, 32.0, 64.0}},
		{Name: "optimizer", Type: study.Categorical, Values: []any{"sgd", "adam", "1"}},
	}
	for i := range want {
		got := s.Spec.Parameters[i]
		if want[i].Type == study.Int {
			got.Step = nil
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Error(want[i].Name, diff)
		}
	}
	if diff := cmp.Diff([]string{"python3", "train.py", "--lr=${lr}", "--layers=${layers}", "--solver=${optimizer}"},
		s.Spec.Trial.Command); diff != "" {
		t.Error("command:", diff)
	}
	// Katib's controller fails an experiment with the first failure beyond its number.
	if b := s.Spec.Budget; b.MaxTrials != 20 || b.MaxFailedTrials != 4 || s.Spec.Parallelism != 4 || s.Spec.Algorithm.Seed != 10 {
		t.Errorf("budget %+v, parallelism %d, algorithm %+v", b, s.Spec.Parallelism, s.Spec.Algorithm)
	}
	if r.Container != "training" {
		t.Errorf("container %q", r.Container)
	}
	for _, piece := range []string{"kind: Job", "--lr=${lr}", "${FANTASIA_STUDY}-${FANTASIA_TRIAL}", `value: "vision"`, "$${HOME}"} {
		if !strings.Contains(string(r.Template), piece) {
			t.Errorf("the template lacks %q:\n%s", piece, r.Template)
		}
	}
	notes := strings.Join(r.Notes, "\n")
	for _, piece := range []string{"base_estimator=GP", "Validation-accuracy is called Validation_accuracy", "bayesianoptimization"} {
		if !strings.Contains(notes, piece) {
			t.Errorf("the notes lack %q:\n%s", piece, notes)
		}
	}
}

func TestKatibPatternsReadWhatKatibReads(t *testing.T) {
	for file, lines := range map[string]map[string]string{
		"job.yaml": {
			"2026-11-21 INFO Epoch[0] Validation-accuracy=0.91": "0.91", "Validation-accuracy = 1e-3": "1e-3", "Train-Validation-accuracy=0.5": "",
			"accuracy=1":              "",
			"Validation-accuracy=nan": "nan", "Validation-accuracy=-nan(ind), x=1": "-nan(ind)", "Validation-accuracy=-Infinity": "-Infinity",
			"Validation-accuracy=1.#QNAN": "1.#QNAN", "Validation-accuracy=NA": "NA", "Validation-accuracy=1.0D-3": "1.0D-3",
			"Validation-accuracy=inferior": "", "Validation-accuracy=nano": "", "Validation-accuracy=NAME": "",
		},
		"pytorch.yaml": {"{metricName: loss, metricValue: -0.25}": "-0.25", "{metricName: loss, metricValue: NaN}": "NaN",
			"{metricName: val-loss, metricValue: 1}": "", "loss=2": ""},
	} {
		_, s := imported(t, source(t, file))
		pattern := regexp.MustCompile(s.Spec.Trial.Metrics.Pattern)
		for line, want := range lines {
			got := ""
			if m := pattern.FindStringSubmatch(line); m != nil {
				got = m[pattern.SubexpIndex(s.Spec.Objective.Metric)]
			}
			if got != want {
				t.Errorf("%s: %q gives %q, want %q (%s)", file, line, got, want, pattern)
			}
		}
	}
}

// Katib accepts a parameter with one value, which a study calls fixed.
func TestKatibOneValue(t *testing.T) {
	text := strings.NewReplacer(`min: "0.001", max: "0.1"`, `min: "0.01", max: "0.01"`, `list: ["64", "16", "32"]`,
		`list: ["64"]`).Replace(source(t, "job.yaml"))
	_, s := imported(t, text)
	for name, want := range map[string]any{"lr": 0.01, "batch": 64.0} {
		for _, p := range s.Spec.Parameters {
			if p.Name == name && (p.Type != study.Fixed || p.Value != want) {
				t.Errorf("%s became %+v, want %v", name, p, want)
			}
		}
	}
}

func TestKatibOtherResources(t *testing.T) {
	r, s := imported(t, source(t, "pytorch.yaml"))
	if s.Spec.Objective.Take != study.TakeBest || s.Spec.Algorithm.Name != "random" || s.Spec.Budget.MaxTrials != katib.MaxTrials {
		t.Errorf("%+v", s.Spec)
	}
	if !strings.Contains(string(r.Template), "kind: PyTorchJob") || !strings.Contains(string(r.Template), "--lr=${lr}") {
		t.Errorf("template:\n%s", r.Template)
	}
	notes := strings.Join(r.Notes, "\n")
	for _, piece := range []string{"medianstop became median", "normal became uniform", "--success", "/var/log/mnist.log",
		"maxTrialCount was not given"} {
		if !strings.Contains(notes, piece) {
			t.Errorf("the notes lack %q:\n%s", piece, notes)
		}
	}
	if !strings.HasPrefix(string(r.Study), "# ") {
		t.Error("the study does not begin with the notes")
	}
}

// Katib's medianstop has a minimum of completed trials and a first step, 3 and 4 by
// default (pkg/earlystopping/v1beta1/medianstop/service.py of Katib).
func TestKatibEarlyStopping(t *testing.T) {
	with := func(block string) string {
		return strings.Replace(source(t, "pytorch.yaml"), "{algorithmName: medianstop}", block, 1)
	}
	for block, want := range map[string]map[string]any{
		"{algorithmName: medianstop}": {"minCompleted": 3, "minSteps": 4},
		`{algorithmName: medianstop, algorithmSettings: [{name: start_step, value: "9"}]}`:          {"minCompleted": 3, "minSteps": 9},
		`{algorithmName: medianstop, algorithmSettings: [{name: min_trials_required, value: "1"}]}`: {"minCompleted": 1, "minSteps": 4},
		`{algorithmName: medianstop, algorithmSettings: [{name: unheard, value: "1"}]}`:             {"minCompleted": 3, "minSteps": 4},
	} {
		r, s := imported(t, with(block))
		if e := s.Spec.EarlyStopping; e == nil || e.Name != "median" || fmt.Sprint(e.Settings) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %v", block, e, want)
		}
		if strings.Contains(block, "unheard") && !strings.Contains(strings.Join(r.Notes, "\n"), "unheard=1 was left out") {
			t.Errorf("%s: %q", block, r.Notes)
		}
	}
	if r, s := imported(t, with("{algorithmName: other}")); s.Spec.EarlyStopping != nil ||
		!strings.Contains(strings.Join(r.Notes, "\n"), "earlyStopping other was left out") {
		t.Errorf("an unknown rule: %+v, %q", s.Spec.EarlyStopping, r.Notes)
	}
	_, err := Katib([]byte(with(`{algorithmName: medianstop, algorithmSettings: [{name: start_step, value: soon}]}`)), KatibOptions{})
	if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), `start_step "soon": want an integer`) {
		t.Errorf("a step that is no number: %v", err)
	}
}

func TestKatibAlgorithms(t *testing.T) {
	for name, want := range map[string]string{"random": "random", "grid": "grid", "tpe": "tpe", "multivariate-tpe": "tpe", "cmaes": "cmaes",
		"bayesianoptimization": "hebo", "pbt": "hebo"} {
		_, s := imported(t, strings.Replace(source(t, "pytorch.yaml"), "algorithmName: random", "algorithmName: "+name, 1))
		if s.Spec.Algorithm.Name != want {
			t.Errorf("%s became %s, want %s", name, s.Spec.Algorithm.Name, want)
		}
	}
}

// A workflow's container is named by the workflow's controller, not in the template.
func TestKatibWorkflow(t *testing.T) {
	r, s := imported(t, source(t, "workflow.yaml"))
	for _, piece := range []string{"kind: Workflow", "--lr=${lr}", "{{inputs.parameters.rows}}", "{{steps.prepare.outputs.result}}"} {
		if !strings.Contains(string(r.Template), piece) {
			t.Errorf("the template lacks %q:\n%s", piece, r.Template)
		}
	}
	if s.Spec.Algorithm.Name != "grid" || s.Spec.Budget.MaxFailedTrials != 1 || r.Container != "main" {
		t.Errorf("algorithm %q, %+v, container %q", s.Spec.Algorithm.Name, s.Spec.Budget, r.Container)
	}
	notes := strings.Join(r.Notes, "\n")
	for _, piece := range []string{"names no command", "primaryPodLabels", "--failure", "grid goes through the space in order"} {
		if !strings.Contains(notes, piece) {
			t.Errorf("the notes lack %q:\n%s", piece, notes)
		}
	}
}

func TestKatibErrorsNameTheField(t *testing.T) {
	job := source(t, "job.yaml")
	for _, tt := range []struct{ old, new, want string }{
		{"kind: Experiment", "kind: Trial", `kind "Trial"`},
		{"type: maximize", "type: most", `spec.objective.type "most"`},
		{"parameterType: int", "parameterType: long", `spec.parameters[2] (layers): parameterType "long"`},
		{`max: "4"`, `max: four`, `feasibleSpace.max "four"`},
		{`"64", "16"`, `"64", many`, `feasibleSpace.list[1] "many"`},
		{"reference: layers}", "reference: width}", `numberLayers refers to "width"`},
		{"${trialParameters.solver}", "${trialParameters.method}", "${trialParameters.method} is not among trialParameters"},
		{"    trialSpec:", "    other:", "trialTemplate.trialSpec is missing"},
		{"    trialSpec:", "    configMap: {name: x}\n    other:", "trialTemplate.configMap"},
		{"  parameters:\n", "  nasConfig: {}\n  parameters:\n", "spec.nasConfig"},
		{"  parameters:\n", "  metricsCollectorSpec: {collector: {kind: Custom}}\n  parameters:\n",
			`kind "Custom": want StdOut, File, TensorFlowEvent`},
		{"  parameters:\n", "  metricsCollectorSpec: {source: {filter: {metricsFormat: ['(a)']}}}\n  parameters:\n", "want two groups"},
		{"${trialSpec.Name}", "${trialSpec.Color}", "${trialSpec.Color}"},
	} {
		text := strings.Replace(job, tt.old, tt.new, 1)
		if text == job {
			t.Fatalf("%q is not in the file", tt.old)
		}
		if _, err := Katib([]byte(text), KatibOptions{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q for %q: error %v, want one with %q", tt.new, tt.old, err, tt.want)
		}
	}
}

// Whatever it is given, it returns an error or a study that can be read.
func FuzzKatib(f *testing.F) {
	f.Add(source(f, "job.yaml"))
	f.Add(source(f, "pytorch.yaml"))
	f.Add(source(f, "workflow.yaml"))
	f.Add(source(f, "mpi.yaml"))
	f.Add(source(f, "alpha.yaml"))
	f.Fuzz(func(t *testing.T, text string) {
		for _, o := range []KatibOptions{{}, {Job: true}} {
			r, err := Katib([]byte(text), o)
			if err != nil {
				continue
			}
			if _, err := file.Parse(r.Study); err != nil {
				t.Error(err)
			}
		}
	})
}
