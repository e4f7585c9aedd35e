// Package kube runs studies that are resources of Kubernetes: while its replica
// leads, it takes up the Study resources of all namespaces, keeps their status,
// and deletes a study with its resource. The ledger stays the record; a resource
// says what is wanted, and its status repeats what the ledger says.
package kube

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Finalizer keeps a resource until its study is gone from the ledger.
	Finalizer = "fantasia.dev/study"
	// ReleasedAnnotation is when Release took the finalizer off: only a
	// coordinator that was started later takes the resource up again.
	ReleasedAnnotation = "fantasia.dev/released"
	// manager owns the fields of the status in server-side apply.
	manager = "fantasia-coordinator"
)

// Studies is the resource.
func Studies() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "fantasia.dev", Version: "v1", Resource: "studies"}
}

// Resource is a Study resource as the API server has it.
type Resource struct {
	Namespace, Name string
	UID             types.UID
	// Version changes with every change, Generation with those of the spec.
	Version    string
	Generation int64
	Created    time.Time
	// Deleting says that somebody has deleted it, and finalizers keep it.
	Deleting    bool
	Finalizers  []string
	Annotations map[string]string
	Spec        any
	Status      Status
}

// Read reads a resource as the dynamic client has it.
func Read(u *unstructured.Unstructured) (*Resource, error) {
	r := &Resource{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
		Version: u.GetResourceVersion(), Generation: u.GetGeneration(), Created: u.GetCreationTimestamp().Time,
		Deleting: u.GetDeletionTimestamp() != nil, Finalizers: u.GetFinalizers(), Annotations: u.GetAnnotations(),
		Spec: u.Object["spec"],
	}
	text, err := json.Marshal(u.Object["status"])
	if err == nil {
		err = json.Unmarshal(text, &r.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("read the status of study %s/%s: %w", r.Namespace, r.Name, err)
	}
	return r, nil
}

// ID is the id of the resource's study: that of its time of creation, and of its
// UID where others have random bits. So a resource has one study, however often
// and by whomever it is taken up, and one that is made again has another.
func (r *Resource) ID() string {
	bits := sha256.Sum256([]byte(r.UID))
	return record.NewID(bytes.NewReader(bits[:]), r.Created)
}

// StudyName is the study's name in the ledger. Its dot keeps it apart from the
// names of studies that were made otherwise, which are DNS labels.
func (r *Resource) StudyName() string { return r.Namespace + "." + r.Name }

// File is the study file that the resource is.
func (r *Resource) File() ([]byte, error) {
	text, err := json.Marshal(map[string]any{
		"apiVersion": study.APIVersion, "kind": study.Kind,
		"metadata": map[string]any{"name": r.Name}, "spec": r.Spec,
	})
	if err != nil {
		return nil, fmt.Errorf("study %s/%s has no form in JSON: %w", r.Namespace, r.Name, err)
	}
	return text, nil
}

// held reports whether the resource has the finalizer.
func (r *Resource) held() bool { return slices.Contains(r.Finalizers, Finalizer) }

// released reports whether the finalizer was taken off after a process began,
// so that the process is to leave the resource alone.
func (r *Resource) released(began time.Time) bool {
	at, err := time.Parse(time.RFC3339, r.Annotations[ReleasedAnnotation])
	return err == nil && !began.After(at)
}
