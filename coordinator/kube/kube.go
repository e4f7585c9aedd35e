// Package kube runs studies that are Kubernetes resources. While its replica leads, it
// runs the Study resources of all namespaces, updates their status, and deletes a study
// when its resource is deleted. If no replica led then, the next leader stops the study (orphans.go). The ledger
// remains authoritative: a resource states what is wanted, and its status repeats the ledger.
package kube

import (
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
	// Finalizer is what earlier versions held resources with until their studies were deleted. It is
	// taken off: a namespace that is being deleted loses the right to do so before its studies.
	Finalizer = study.Group + "/study"
	// manager names this program in the fields that it has written.
	manager = "fantasia-coordinator"
)

// Studies returns the resource type of studies.
func Studies() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: study.Group, Version: study.Version, Resource: study.Plural}
}

// Resource is a Study resource as the API server stores it.
type Resource struct {
	Namespace, Name string
	UID             types.UID
	// Version changes with every change, Generation only with changes of the spec.
	Version    string
	Generation int64
	Created    time.Time
	// Deleting means that the resource was deleted and finalizers keep it.
	Deleting   bool
	Finalizers []string
	Labels     map[string]string
	Spec       any
	Status     Status
}

// Read converts a resource of the dynamic client.
func Read(u *unstructured.Unstructured) (*Resource, error) {
	r := &Resource{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
		Version: u.GetResourceVersion(), Generation: u.GetGeneration(), Created: u.GetCreationTimestamp().Time,
		Deleting: u.GetDeletionTimestamp() != nil, Finalizers: u.GetFinalizers(),
		Labels: u.GetLabels(),
		Spec:   u.Object["spec"],
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

// ID returns the id of the resource's study, made of the resource's creation time and,
// in place of the random bits, its UID. A resource therefore has one study, however
// often it is processed, and a recreated resource has another one.
func (r *Resource) ID() string {
	return record.ResourceID(string(r.UID), r.Created)
}

// StudyName returns the study's name in the ledger. Its dot distinguishes it from the
// names of other studies, which are DNS labels.
func (r *Resource) StudyName() string { return r.Namespace + "." + r.Name }

// File returns the resource as a study file.
func (r *Resource) File() ([]byte, error) {
	text, err := json.Marshal(map[string]any{
		"apiVersion": study.APIVersion, "kind": study.Kind,
		"metadata": map[string]any{"name": r.Name, "labels": r.Labels}, "spec": r.Spec,
	})
	if err != nil {
		return nil, fmt.Errorf("encode study %s/%s as JSON: %w", r.Namespace, r.Name, err)
	}
	return text, nil
}

// hasFinalizer reports whether the resource has the finalizer.
func (r *Resource) hasFinalizer() bool { return slices.Contains(r.Finalizers, Finalizer) }
