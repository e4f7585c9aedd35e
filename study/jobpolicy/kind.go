package jobpolicy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobshape"
)

// Kind says of a kind of resources, such as PyTorchJob, what a worker must know to evaluate trials
// by them.
type Kind struct {
	// APIVersion is the kind's, such as kubeflow.org/v1, and Resource its name in the cluster's API,
	// such as pytorchjobs.
	APIVersion string `yaml:"apiVersion"`
	Resource   string `yaml:"resource"`
	// Success and Failure are CEL conditions over a resource (self) and its status; empty means
	// those of kinds with conditions as a Job has them.
	Success string `yaml:"success"`
	Failure string `yaml:"failure"`
	// Pods are the paths of all pod templates, such as spec.pytorchReplicaSpecs.*.template, where *
	// stands for any name or element of a list.
	Pods []string `yaml:"pods"`
	// Reporter is the path of the pod template whose program reports, such as
	// spec.pytorchReplicaSpecs.Master.template; empty means all.
	Reporter string `yaml:"reporter"`
}

func (k Kind) valid() error {
	group, version, ok := strings.Cut(k.APIVersion, "/")
	switch {
	case !ok || group == "" || version == "":
		return fmt.Errorf("apiVersion: %q is not accepted; want GROUP/VERSION, such as kubeflow.org/v1", k.APIVersion)
	case k.Resource == "":
		return errors.New("resource is missing; want the kind's name in the API, such as pytorchjobs")
	case len(k.Pods) == 0:
		return errors.New("pods is missing; want the paths of all pod templates, such as [spec.pytorchReplicaSpecs.*.template]")
	}
	for _, c := range []struct{ field, expression string }{{"success", k.Success}, {"failure", k.Failure}} {
		if c.expression == "" {
			continue
		}
		if _, err := NewCondition(c.expression); err != nil {
			return fmt.Errorf("%s: %w", c.field, err)
		}
	}
	return nil
}

// KindOf returns the kind of a template other than a Job in a namespace. The error says which kinds
// are accepted.
func (p Policies) KindOf(namespace string, j *study.Job) (Kind, error) {
	kinds := p[namespace].Kinds
	if k, ok := kinds[j.Kind]; ok && k.APIVersion == j.APIVersion {
		return k, nil
	}
	accepted := []string{"batch/v1 Job"}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		accepted = append(accepted, kinds[name].APIVersion+" "+name)
	}
	f := &findings{}
	f.add(".kind", "the studies of namespace %s may not bring %s %s; they may bring %s", namespace, j.APIVersion, j.Kind,
		strings.Join(accepted, ", "))
	return Kind{}, f.err()
}

// CheckKind is CheckManifest for the manifest of another kind than a Job. Every pod template must be
// where the kind has one, and is checked as a Job's is.
func (p Policies) CheckKind(namespace string, k Kind, manifest []byte) error {
	f := &findings{}
	var object map[string]any
	if err := json.Unmarshal(manifest, &object); err != nil {
		f.add("", "is not a resource: %v", err)
		return f.err()
	}
	f.ownMetadata(object)
	own, known := p[namespace], map[string]bool{}
	for _, path := range k.Pods {
		for _, at := range places(object, strings.Split(path, "."), "") {
			known[at.path] = true
			f.podTemplate(namespace, own, at)
		}
	}
	f.addIf(len(known) == 0, "", "has no pod template; want one at %s", strings.Join(k.Pods, " or "))
	for _, at := range jobshape.PodTemplates(object, "") {
		f.addIf(!known[at], at, "may not be a pod template: those of this kind are at %s", strings.Join(k.Pods, ", "))
	}
	return f.err()
}

// ownMetadata checks the metadata of a resource.
func (f *findings) ownMetadata(object map[string]any) {
	var of struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	text, err := json.Marshal(map[string]any{"metadata": object["metadata"]})
	if err == nil {
		err = json.Unmarshal(text, &of)
	}
	if err != nil {
		f.add(".metadata", "is not the metadata of a resource: %v", err)
		return
	}
	f.metadata(".metadata", &of.Metadata)
}

// place is a value in a manifest, with its path.
type place struct {
	path  string
	value any
}

// places returns the values at a path, in which * stands for any name or element.
func places(value any, path []string, at string) []place {
	if len(path) == 0 {
		return []place{{at, value}}
	}
	var found []place
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if path[0] == name || path[0] == "*" {
				found = append(found, places(v[name], path[1:], at+"."+name)...)
			}
		}
	case []any:
		for i := range v {
			if path[0] == strconv.Itoa(i) || path[0] == "*" {
				found = append(found, places(v[i], path[1:], at+"."+strconv.Itoa(i))...)
			}
		}
	}
	return found
}

// podTemplate checks a pod template as a Job's is checked.
func (f *findings) podTemplate(namespace string, own Policy, at place) {
	text, err := json.Marshal(at.value)
	if err != nil {
		f.add(at.path, "cannot be written as JSON: %v", err)
		return
	}
	pod, err := jobshape.ReadPod(jobshape.Path+at.path, text)
	if !f.shaped(err) {
		return
	}
	f.metadata(at.path+".metadata", &pod.ObjectMeta)
	f.podFields(namespace, own, at.path+".spec", &pod.Spec)
	f.podSecurity(namespace, own.level(), at.path, pod)
}
