package migrate

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

// Katib's placeholders become the study's own words (JobWords), and other texts that look
// like words are escaped. The trial's name has the resource's, which has no dot.
func TestKatibJobInTheStudy(t *testing.T) {
	r, s := importedWith(t, source(t, "job.yaml"), KatibOptions{Job: true})
	want := &study.Job{
		Container: "training",
		Metadata:  study.JobMetadata{Labels: map[string]string{"team": "vision"}},
		Spec: map[string]any{"template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never",
			"containers": []any{
				map[string]any{"name": "logger", "image": "example/logger"},
				map[string]any{
					"name": "training", "image": "example/mnist", "command": []any{"python3", "train.py"},
					"args": []any{"--lr=${lr}", "--layers=${layers}", "--solver=${optimizer}"},
					"env": []any{
						map[string]any{"name": "TRIAL", "value": "${FANTASIA_RESOURCE}-${FANTASIA_TRIAL}"},
						map[string]any{"name": "TEAM", "value": "vision"},
						map[string]any{"name": "SHELL_WORD", "value": "$${HOME}"},
					},
				},
			},
		}}},
	}
	if diff := cmp.Diff(want, s.Spec.Trial.Job); diff != "" {
		t.Error("the Job (-want +got):", diff)
	}
	if len(s.Spec.Trial.Command) != 0 || r.Template != nil {
		t.Errorf("command %q, template %q: want neither beside the Job", s.Spec.Trial.Command, r.Template)
	}
	if s.Spec.Trial.Metrics == nil || s.Spec.Objective.Metric != "Validation_accuracy" {
		t.Errorf("metrics %+v of %s", s.Spec.Trial.Metrics, s.Spec.Objective.Metric)
	}
	if strings.Contains(string(r.Study), "job: {") {
		t.Errorf("the Job is on one line:\n%s", r.Study)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "spec.pool") ||
		strings.Contains(notes, "the command has the trial's name") {
		t.Errorf("notes:\n%s", notes)
	}
}

// What a study's Job cannot have is either left out with a note, because it has no
// effect, or an error that names the field of the Experiment.
func TestKatibJobNotes(t *testing.T) {
	change := func(pairs ...string) string {
		text := source(t, "job.yaml")
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(text, pairs[i]) {
				t.Fatalf("%q is not in the file", pairs[i])
			}
			text = strings.Replace(text, pairs[i], pairs[i+1], 1)
		}
		return text
	}
	const metadata, container = "metadata: {labels: {team: vision}}", "primaryContainerName: training"
	for _, tt := range []struct{ change, note []string }{
		{[]string{metadata, "metadata: {name: a, namespace: training, creationTimestamp: null, labels: {team: vision}}"},
			[]string{"metadata.name a was left out", "metadata.namespace training was left out"}},
		{[]string{container, container + "\n    failureCondition: status.failed"},
			[]string{"failureCondition was left out", "not by status.failed"}},
		{[]string{container, container + "\n    primaryPodLabels: {a: b}"}, []string{"primaryPodLabels"}},
	} {
		r, s := importedWith(t, change(tt.change...), KatibOptions{Job: true})
		for _, piece := range tt.note {
			if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, piece) {
				t.Errorf("%q: the notes lack %q:\n%s", tt.change, piece, notes)
			}
		}
		if diff := cmp.Diff(study.JobMetadata{Labels: map[string]string{"team": "vision"}}, s.Spec.Trial.Job.Metadata); diff != "" {
			t.Errorf("%q: metadata (-want +got): %s", tt.change, diff)
		}
	}
	// Katib writes its default conditions into each Experiment.
	r, _ := importedWith(t, change(container, container+`
    successCondition: status.conditions.#(type=="Complete")#|#(status=="True")#
    failureCondition: status.conditions.#(type=="Failed")#|#(status=="True")#`), KatibOptions{Job: true})
	if notes := strings.Join(r.Notes, "\n"); strings.Contains(notes, "Condition was left out") {
		t.Errorf("Katib's default conditions have a note:\n%s", notes)
	}
}

func TestKatibJobErrorsNameTheField(t *testing.T) {
	job := source(t, "job.yaml")
	for _, tt := range []struct{ old, new, want string }{
		{"kind: Job", "kind: PyTorchJob",
			`spec.trialTemplate.trialSpec: apiVersion "batch/v1", kind "PyTorchJob": want a Job of batch/v1, or another kind with pod templates`},
		{"kind: Job", "kind: \"\"", `kind "": want a Job`},
		{"apiVersion: batch/v1", "apiVersion: batch/v2", `apiVersion "batch/v2"`},
		{"{labels: {team: vision}}", "{finalizers: [a/b]}", "spec.trialTemplate.trialSpec.metadata.finalizers has no counterpart"},
		{"{labels: {team: vision}}", "{labels: {'${trialParameters.solver}': a}}", "spec.trialTemplate.trialSpec.metadata.labels: the key"},
		{"{labels: {team: vision}}", "{labels: [team]}", "spec.trialTemplate.trialSpec.metadata.labels"},
		{"            restartPolicy: Never", "            nodeSelector: {'${trialParameters.solver}': a}", `the key "${optimizer}"`},
		{"restartPolicy: Never", "restartPolicy: Always",
			`spec.trialTemplate.trialSpec.spec.template.spec.restartPolicy: "Always" is not accepted`},
		{"restartPolicy: Never", "activeDeadlineSeconds: '${trialParameters.numberLayers}'",
			"spec.trialTemplate.trialSpec.spec.template.spec.activeDeadlineSeconds: expected a whole number of 64 bits"},
		{"restartPolicy: Never", "restartPolice: Never",
			`spec.trialTemplate.trialSpec.spec.template.spec.restartPolice: unknown field "restartPolice" (did you mean "restartPolicy"?)`},
		{"primaryContainerName: training", "primaryContainerName: trainer",
			`spec.trialTemplate.primaryContainerName: "trainer" is not the name of a container`},
		{"      spec:\n        template:", "      suspend: true\n      spec:\n        template:", "spec.trialTemplate.trialSpec.suspend"},
		{"      spec:\n        template:", "      status:\n        template:", "spec.trialTemplate.trialSpec.spec is missing"},
	} {
		text := strings.Replace(job, tt.old, tt.new, 1)
		if text == job {
			t.Fatalf("%q is not in the file", tt.old)
		}
		if _, err := Katib([]byte(text), KatibOptions{Job: true}); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q for %q: error %v, want one with %q", tt.new, tt.old, err, tt.want)
		}
	}
}
