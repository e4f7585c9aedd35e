package file

import (
	"reflect"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// document is a study file, which may also be a resource of Kubernetes.
type document struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   metadata   `json:"metadata"`
	Spec       study.Spec `json:"spec"`
}

// metadata is that of a resource. The name and the labels are the study's: Kubernetes keeps
// the rest, and nothing else reads it.
type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// study returns the study of the file.
func (d *document) study() *study.Study {
	return &study.Study{APIVersion: d.APIVersion, Kind: d.Kind, Metadata: study.Metadata{Name: d.Metadata.Name, Labels: d.Metadata.Labels},
		Spec: d.Spec}
}

// check reports what Kubernetes would refuse for any resource.
func (m *metadata) check(found *check.Problems) {
	if m.Namespace != "" && !study.IsName(m.Namespace) {
		found.Add("metadata.namespace", "%s: a namespace is lower-case letters, digits and dashes, at most %d, with no dash at its ends",
			given(m.Namespace), study.MaxLabel)
	}
}

// serverFields are the fields of metadata that an API server fills in, so that a
// resource which was read from one is a study file as well.
var serverFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generation", "managedFields",
	"ownerReferences", "resourceVersion", "selfLink", "uid",
}

// ofServer reports whether a field of a file is an API server's, and ignored.
func ofServer(in reflect.Type, field string) bool {
	return in == reflect.TypeFor[metadata]() && slices.Contains(serverFields, field) ||
		in == reflect.TypeFor[document]() && field == "status"
}

// resourceFields adds the fields of a resource to the schema of metadata.
func resourceFields(schema *jsonschema.Schema) {
	schema.Properties.Set("namespace", &jsonschema.Schema{
		Type: "string", Pattern: `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`,
		Description: "The namespace of the resource in Kubernetes; ignored elsewhere.",
	})
	schema.Properties.Set("annotations", &jsonschema.Schema{
		Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "string"},
		Description: "The annotations of the resource in Kubernetes; ignored elsewhere.",
	})
}
