package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Where the definitions of others' resources come from: modules that ship them.
var resourceDefinitions = []struct{ module, version, folder string }{
	{"github.com/kedacore/keda/v2", "v2.21.0", "config/crd/bases"},
	{"github.com/cert-manager/cert-manager", "v1.19.1", "deploy/crds"},
	{"github.com/prometheus-operator/prometheus-operator", "v0.85.0", "example/prometheus-operator-crd"},
}

// writeSchemas writes a JSON Schema for each kind of Kubernetes, of KEDA, of
// cert-manager, of the Prometheus operator and of the chart itself to a folder, as kubeconform finds
// them there with -schema-location dir/{{.ResourceKind}}{{.KindSuffix}}.json.
// Properties that are not known are refused. Nothing is asked of a cluster.
func writeSchemas(ctx context.Context, chart, dir string) error {
	definitions, err := KubernetesDefinitions(ctx)
	if err != nil {
		return err
	}
	if err := writeKinds(definitions.loosen(), dir); err != nil {
		return err
	}
	files := []string{filepath.Join(chart, "crds", "study-crd.yaml")}
	for _, of := range resourceDefinitions {
		root, err := ModuleDir(ctx, of.module, of.version)
		if err != nil {
			return err
		}
		found, err := filepath.Glob(filepath.Join(root, of.folder, "*.yaml"))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("%s %s has no definitions in %s", of.module, of.version, of.folder)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if err := writeCustom(file, dir); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// writeKinds writes the schemas of the kinds among the definitions, each with all
// that it refers to.
func writeKinds(definitions Definitions, dir string) error {
	strict := map[string]any{}
	for name, d := range definitions {
		strict[name] = strictly(d, func(full string) string { return "#/definitions/" + full })
	}
	for name, d := range definitions {
		kinds, _ := d["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue
		}
		kind, ok := kinds[0].(map[string]any)
		if !ok || strings.HasSuffix(fmt.Sprint(kind["kind"]), "List") {
			continue
		}
		used := map[string]any{}
		wanted := []string{name}
		for len(wanted) > 0 {
			next := wanted[0]
			wanted = wanted[1:]
			if _, have := used[next]; have {
				continue
			}
			used[next] = strict[next]
			for _, ref := range references(strict[next]) {
				wanted = append(wanted, strings.TrimPrefix(ref, "#/definitions/"))
			}
		}
		schema := map[string]any{"$ref": "#/definitions/" + name, "definitions": used}
		if err := writeSchema(dir, fmt.Sprint(kind["group"]), fmt.Sprint(kind["version"]), fmt.Sprint(kind["kind"]), schema); err != nil {
			return err
		}
	}
	return nil
}

// customDefinition is what is read of a CustomResourceDefinition.
type customDefinition struct {
	Spec struct {
		Group    string
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Schema struct {
				OpenAPIV3Schema map[string]any `yaml:"openAPIV3Schema"`
			}
		}
	}
}

func writeCustom(file, dir string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var d customDefinition
	if err := yaml.Unmarshal(text, &d); err != nil {
		return err
	}
	for _, v := range d.Spec.Versions {
		if err := writeSchema(dir, d.Spec.Group, v.Name, d.Spec.Names.Kind, strictly(v.Schema.OpenAPIV3Schema, strings.Clone)); err != nil {
			return err
		}
	}
	return nil
}

func writeSchema(dir, group, version, kind string, schema map[string]any) error {
	text, err := json.Marshal(schema)
	if err != nil {
		return fmt.Errorf("schema of %s: %w", kind, err)
	}
	// As kubeconform forms KindSuffix: the group's first part, and the version.
	suffix := "-" + version
	if group != "" {
		suffix = "-" + strings.Split(group, ".")[0] + suffix
	}
	return os.WriteFile(filepath.Join(dir, strings.ToLower(kind+suffix)+".json"), text, 0o600)
}
