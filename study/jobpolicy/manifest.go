package jobpolicy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	strict "sigs.k8s.io/json"

	"github.com/fantasia-hpo/fantasia/study"
)

// path is where the template is in a study file.
const path = "spec.trial.job"

// Manifest returns the template as the manifest of a Job, in JSON, which is YAML too.
func Manifest(j *study.Job) ([]byte, error) {
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": cmp.Or(j.APIVersion, "batch/v1"), "kind": cmp.Or(j.Kind, "Job"), "metadata": j.Metadata, "spec": j.Spec,
	})
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written as JSON: %w", path, err)
	}
	return manifest, nil
}

// findings collects problems.
type findings struct{ list []study.Problem }

func (f *findings) add(field, format string, args ...any) {
	f.list = append(f.list, study.Problem{Path: path + field, Message: fmt.Sprintf(format, args...)})
}

// addIf is add if something is wrong.
func (f *findings) addIf(wrong bool, field, format string, args ...any) {
	if wrong {
		f.add(field, format, args...)
	}
}

// err returns a *study.Problems, or nil.
func (f *findings) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &study.Problems{List: f.list}
}

// CheckShape returns a *study.Problems unless the template is a Job as Kubernetes
// defines it, that runs its program once. It knows no policy, and of other kinds only that they
// need a pod template.
func CheckShape(j *study.Job) error {
	f := &findings{}
	if !j.IsJob() {
		f.addIf(len(podTemplates(j.Spec, ".spec")) == 0, ".spec", "has no pod template: no mapping in it has spec.containers")
		return f.err()
	}
	manifest, err := Manifest(j)
	if err != nil {
		return err
	}
	job := f.decode(manifest)
	if job == nil {
		return f.err()
	}
	f.runsOnce(&job.Spec)
	pod := &job.Spec.Template.Spec
	f.addIf(len(pod.Containers) == 0, ".spec.template.spec.containers", "is missing: a pod has at least one container")
	found := slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == j.Container })
	f.addIf(j.Container != "" && !found, ".container", "%q is not the name of a container of the pod", j.Container)
	return f.err()
}

// decode decodes a manifest. It returns nil, and reports why, if that is impossible.
func (f *findings) decode(manifest []byte) *batchv1.Job {
	job := &batchv1.Job{}
	unknown, err := strict.UnmarshalStrict(manifest, job)
	if err != nil {
		f.add(".spec", "is not the spec of a Job: %v", err)
		return nil
	}
	for _, err := range unknown {
		f.add("", "is not a Job as Kubernetes defines it: %v", err)
	}
	return job
}

// runsOnce checks that each pod is run once: a study's retries say how often a trial is
// tried.
func (f *findings) runsOnce(spec *batchv1.JobSpec) {
	if n := spec.BackoffLimit; n != nil && *n != 0 {
		f.add(".spec.backoffLimit", "%d is not accepted; want 0, or leave it out: spec.trial.retries says how often a trial is tried", *n)
	}
	if p := spec.Template.Spec.RestartPolicy; p != "" && p != "Never" {
		f.add(".spec.template.spec.restartPolicy", "%q is not accepted; want Never, or leave it out: spec.trial.retries says how often a trial is tried", p)
	}
}

// plain checks that a pod template's metadata has only labels and annotations.
func plain(m *metav1.ObjectMeta) bool {
	kept := metav1.ObjectMeta{Labels: m.Labels, Annotations: m.Annotations}
	a, errA := json.Marshal(kept)
	b, errB := json.Marshal(m)
	return errA == nil && errB == nil && string(a) == string(b)
}
