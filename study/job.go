package study

import (
	"fmt"
	"strings"
)

// MaxJob is the largest size of a Job template as JSON, in bytes. Each Job contains it a
// second time, so that a worker that was restarted can continue.
const MaxJob = 64 << 10

// Job is the template of the Jobs of Kubernetes, or resources of another kind, that evaluate a
// study's trials, one for each attempt or, in mode stream, for each slot of a worker. Its texts may contain
// ${words}: names of parameters, args,
// overrides, and JobWords. Package jobshape checks what it contains,
// and package jobpolicy whether a namespace may bring it.
type Job struct {
	// APIVersion and Kind are those of another resource than a Job, such as kubeflow.org/v1 and
	// PyTorchJob, which the operator must allow; empty means a Job.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	// Container names the program's container; empty means the first of a pod.
	Container string `json:"container,omitempty"`
	// Metadata is added to each Job.
	Metadata JobMetadata `json:"metadata,omitzero"`
	// Spec is the spec of each Job as Kubernetes defines it. It is shared: do not change
	// it.
	Spec map[string]any `json:"spec"`
}

// JobMetadata is the part of a Job's metadata that a study can choose.
type JobMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// IsJob reports whether the template is of a Job, and not of another kind.
func (j *Job) IsJob() bool {
	return (j.APIVersion == "" || j.APIVersion == "batch/v1") && (j.Kind == "" || j.Kind == "Job")
}

// plainJob has no methods of its own.
type plainJob Job

// MarshalJSON keeps the types of the numbers in the spec.
func (j Job) MarshalJSON() ([]byte, error) {
	j.Spec = exactMap(j.Spec)
	return marshal(plainJob(j))
}

// UnmarshalJSON keeps the types of the numbers in the spec.
func (j *Job) UnmarshalJSON(data []byte) error {
	var plain plainJob
	if err := unmarshalExact(data, &plain); err != nil {
		return fmt.Errorf("read a Job: %w", err)
	}
	if _, err := inexact(plain.Spec); err != nil {
		return fmt.Errorf("read the spec of a Job: %w", err)
	}
	*j = Job(plain)
	return nil
}

// Namespace returns the namespace of the resource that a study is, which its name
// begins with: NAMESPACE.NAME. Other studies have none, since their names have no dot.
func Namespace(name string) (namespace string, ok bool) {
	namespace, _, ok = strings.Cut(name, ".")
	return namespace, ok
}

// JobWords returns the words, besides the names of parameters, args and overrides, that
// a ${word} in the template of a Job can be.
func JobWords() []string {
	return []string{
		"FANTASIA_STUDY", "FANTASIA_RESOURCE", "FANTASIA_TRIAL", "FANTASIA_ATTEMPT", "FANTASIA_SLOT", "FANTASIA_SEED", "FANTASIA_CHECKPOINT",
		"FANTASIA_CHECKPOINT_KEY",
	}
}

// StreamJobWords returns the words that the template of a Job of mode stream can contain: those
// that mean the same for every trial of a worker's slot.
func StreamJobWords() []string {
	return []string{"FANTASIA_STUDY", "FANTASIA_RESOURCE", "FANTASIA_SLOT"}
}
