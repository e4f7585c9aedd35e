//go:build e2e && (keda || policies || certmanager)

package e2e

import (
	"bytes"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// documents reads the objects of a YAML stream.
func documents(text []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var u unstructured.Unstructured
		switch err := d.Decode(&u.Object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(u.Object) > 0:
			all = append(all, &u)
		}
	}
}
