package jobshape

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	strict "sigs.k8s.io/json"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// Path is where the template is in a study file.
const Path = "spec.trial.job"

// Manifest returns the template as the manifest of a Job, in JSON, which is YAML too.
func Manifest(j *study.Job) ([]byte, error) {
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": cmp.Or(j.APIVersion, "batch/v1"), "kind": cmp.Or(j.Kind, "Job"), "metadata": j.Metadata, "spec": j.Spec,
	})
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written as JSON: %w", Path, err)
	}
	return manifest, nil
}

// Check returns a *study.Problems unless the template is a Job as Kubernetes defines it, that runs
// its program once. It knows no policy, and of other kinds only that they need a pod template.
func Check(j *study.Job) error {
	w := walker{check.NewProblems()}
	if !j.IsJob() {
		w.AddIf(len(PodTemplates(j.Spec, ".spec")) == 0, Path+".spec", "has no pod template: no mapping in it has spec.containers")
		return w.Err("")
	}
	manifest, err := Manifest(j)
	if err != nil {
		return err
	}
	job, err := w.manifest(manifest)
	if err != nil {
		return err
	}
	value := at(job, "spec", "template", "spec", "containers")
	containers, isList := value.([]any)
	w.AddIf(value == nil || isList && len(containers) == 0, Path+".spec.template.spec.containers",
		"is missing: a pod has at least one container")
	found := slices.ContainsFunc(containers, func(c any) bool { return at(c, "name") == j.Container })
	w.AddIf(j.Container != "" && !found, Path+".container", "%q is not the name of a container of the pod", j.Container)
	return w.Err("")
}

// ReadJob returns the Job of a manifest, in JSON, that a pool or a worker has made. The error is that
// of Check, which looks at everything here but the containers' names.
func ReadJob(manifest []byte) (*batchv1.Job, error) {
	w := walker{check.NewProblems()}
	if _, err := w.manifest(manifest); err != nil {
		return nil, err
	}
	job := &batchv1.Job{}
	return job, w.read(Path, manifest, job)
}

// ReadPod returns the pod template at a path of a study file, from JSON. The error is a
// *study.Problems unless it is one as Kubernetes defines it.
func ReadPod(path string, template []byte) (*corev1.PodTemplateSpec, error) {
	w := walker{check.NewProblems()}
	value, err := decode(template)
	if err != nil {
		return nil, err
	}
	w.walk(path, reflect.TypeFor[corev1.PodTemplateSpec](), value)
	pod := &corev1.PodTemplateSpec{}
	return pod, w.read(path, template, pod)
}

// read reads JSON as API servers do, unless it has problems.
func (w walker) read(path string, text []byte, into any) error {
	if err := w.Err(""); err != nil {
		return err
	}
	unknown, err := strict.UnmarshalStrict(text, into)
	for _, err := range append(unknown, err) {
		w.AddIf(err != nil, path, "is not as Kubernetes defines it: %v", err)
	}
	return w.Err("")
}

// manifest checks the manifest of a Job, and returns it.
func (w walker) manifest(text []byte) (any, error) {
	job, err := decode(text)
	if err != nil {
		return nil, err
	}
	w.walk(Path, reflect.TypeFor[batchv1.Job](), job)
	// A study's retries say how often a trial is tried, so each pod is run once.
	const retries = "or leave it out: spec.trial.retries says how often a trial is tried"
	if n, ok := at(job, "spec", "backoffLimit").(json.Number); ok && n != "0" {
		w.Add(Path+".spec.backoffLimit", "%s is not accepted; want 0, %s", n, retries)
	}
	if p, ok := at(job, "spec", "template", "spec", "restartPolicy").(string); ok && p != "" && p != "Never" {
		w.Add(Path+".spec.template.spec.restartPolicy", "%q is not accepted; want Never, %s", p, retries)
	}
	return job, nil
}

// decode decodes JSON with its numbers as they are written.
func decode(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("%s: read the manifest: %w", Path, err)
	}
	return value, nil
}

// at returns what a value has at a path of names; nil if it has nothing there.
func at(value any, path ...string) any {
	for _, name := range path {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[name]
	}
	return value
}

// PodTemplates returns the paths of everything that could be a pod template: what has containers in
// its spec.
func PodTemplates(value any, at string) (found []string) {
	switch v := value.(type) {
	case map[string]any:
		if spec, ok := v["spec"].(map[string]any); ok &&
			(spec["containers"] != nil || spec["initContainers"] != nil || spec["ephemeralContainers"] != nil) {
			return []string{at}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = append(found, PodTemplates(v[name], at+"."+name)...)
		}
	case []any:
		for i := range v {
			found = append(found, PodTemplates(v[i], at+"."+strconv.Itoa(i))...)
		}
	}
	return found
}
