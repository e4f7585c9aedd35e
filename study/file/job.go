package file

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// checkJob checks a trial that is a Job, except for what Kubernetes defines: package
// jobshape checks that.
func checkJob(t *study.TrialTemplate, found *check.Problems, params []study.Parameter) {
	const path = "spec.trial.job"
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"command", len(t.Command) > 0}, {"workdir", t.Workdir != ""}, {"env", len(t.Env) > 0},
	} {
		found.AddIf(field.set, "spec.trial."+field.name, "cannot be combined with spec.trial.job, whose containers say how the program runs: "+
			"leave one of them out")
	}
	found.AddIf((t.Job.APIVersion == "") != (t.Job.Kind == ""), path,
		"must have both apiVersion and kind, such as kubeflow.org/v1 and PyTorchJob, or neither for a Job")
	found.AddIf(t.Mode == study.ModeStream && !t.Job.IsJob(), "spec.trial.mode",
		"stream needs a Job, not %s: leave out the job's apiVersion and kind", t.Job.Kind)
	if len(t.Job.Spec) == 0 {
		found.Add(path+".spec", "is missing: give the spec of a Job, with its pod template")
		return
	}
	if text, err := json.Marshal(t.Job); err == nil && len(text) > study.MaxJob {
		found.Add(path,
			"the template has %d bytes as JSON, at most %d are accepted: move long texts into a ConfigMap that the pod mounts", len(text),
			study.MaxJob)
	}
	for _, part := range []struct {
		path  string
		value any
	}{{path + ".metadata.labels", anyMap(t.Job.Metadata.Labels)}, {path + ".metadata.annotations", anyMap(t.Job.Metadata.Annotations)},
		{path + ".spec", t.Job.Spec}} {
		checkJobWords(found, part.path, part.value, false, t.Mode, params)
	}
}

// anyMap returns a map of texts as decoded YAML is.
func anyMap(texts map[string]string) map[string]any {
	m := make(map[string]any, len(texts))
	for key, text := range texts {
		m[key] = text
	}
	return m
}

// checkJobWords checks the ${words} in all texts below a value; element means that the
// value is an element of a list.
func checkJobWords(found *check.Problems, path string, value any, element bool, mode study.Mode, params []study.Parameter) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			checkJobWords(found, path+check.Key(key), v[key], false, mode, params)
		}
	case []any:
		for i := range v {
			checkJobWords(found, fmt.Sprintf("%s[%d]", path, i), v[i], true, mode, params)
		}
	case string:
		words, err := study.CommandWords(v)
		if err != nil {
			found.Add(path, "%s", err)
		}
		for _, word := range words {
			switch known := study.JobWords(); {
			case mode == study.ModeStream && !slices.Contains(study.StreamJobWords(), word):
				found.Add(path, "${%s} differs from trial to trial, but in mode stream a Job evaluates one trial after another and gets their "+
					"parameters as lines of input: leave it out; %s stay the same",
					word, strings.Join(study.StreamJobWords(), ", "))
			case (word == "args" || word == "overrides") && !element:
				found.Add(path, "${%s} stands for several texts: make it an element of a list, such as args", word)
			case word == "args" || word == "overrides" || slices.Contains(known, word):
			case word == "file":
				found.Add(path, "${file} does not exist in a Job: let the program read FANTASIA_PARAMETERS")
			default:
				checkParameterWord(found, path, word, params, "args, overrides, "+strings.Join(known, ", "))
			}
		}
	}
}
