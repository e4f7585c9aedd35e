package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kubernetesVersion is the version of Kubernetes whose types the chart is checked
// against.
const kubernetesVersion = "v1.36.3"

// Definitions are the OpenAPI definitions of Kubernetes' types, by their full names.
type Definitions map[string]map[string]any

// ModuleDir returns the directory of a module in the module cache, downloading it if
// necessary.
func ModuleDir(ctx context.Context, module, version string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	cmd.Dir = os.TempDir() // outside of any module
	out, err := cmd.Output()
	var m struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &m); jsonErr != nil || m.Error != "" || err != nil {
		return "", fmt.Errorf("download %s %s: %s: %w", module, version, m.Error, errors.Join(err, jsonErr))
	}
	return m.Dir, nil
}

// KubernetesDefinitions reads the definitions in Kubernetes' module.
func KubernetesDefinitions(ctx context.Context) (Definitions, error) {
	dir, err := ModuleDir(ctx, "k8s.io/kubernetes", kubernetesVersion)
	if err != nil {
		return nil, err
	}
	file, err := os.ReadFile(filepath.Join(dir, "api", "openapi-spec", "swagger.json"))
	if err != nil {
		return nil, fmt.Errorf("read the definitions of Kubernetes: %w", err)
	}
	var spec struct{ Definitions Definitions }
	if err := json.Unmarshal(file, &spec); err != nil {
		return nil, fmt.Errorf("read the definitions of Kubernetes: %w", err)
	}
	return spec.Definitions, nil
}

// find returns a definition by the last part of its name, in the form of
// values.schema.json: strict, without descriptions, and with references by the last
// part too.
func (d Definitions) find(name string) (map[string]any, error) {
	for _, p := range append(definitionPackages, "io.k8s.apimachinery.pkg.api.resource.", "io.k8s.apimachinery.pkg.util.intstr.",
		"io.k8s.apimachinery.pkg.apis.meta.v1.") {
		if definition, ok := d[p+name]; ok {
			strict := strictly(definition, func(full string) string { return defs + full[strings.LastIndex(full, ".")+1:] })
			delete(strict, "description")
			return strict, nil
		}
	}
	return nil, fmt.Errorf("no definition %q in Kubernetes %s", name, kubernetesVersion)
}

// strictly returns a definition as JSON Schema that refuses unknown properties. ref
// renames references, which it receives without #/definitions/.
func strictly(definition map[string]any, ref func(string) string) map[string]any {
	out := map[string]any{}
	for key, value := range definition {
		switch value := value.(type) {
		case map[string]any:
			if key == "properties" {
				properties := map[string]any{}
				for name, p := range value {
					if p, ok := p.(map[string]any); ok {
						properties[name] = strictly(p, ref)
					}
				}
				out[key] = properties
			} else {
				out[key] = strictly(value, ref)
			}
		case string:
			if key == "$ref" {
				value = ref(strings.TrimPrefix(value, "#/definitions/"))
			}
			if key != "description" {
				out[key] = value
			}
		default:
			if !strings.HasPrefix(key, "x-kubernetes") && key != "default" {
				out[key] = value
			}
		}
	}
	// Some properties are documented next to a reference; draft 7 ignores the rest.
	if _, ok := out["properties"]; ok {
		out["additionalProperties"] = false
	}
	switch out["format"] {
	case "int-or-string":
		return map[string]any{"type": []any{"integer", "string"}}
	case "double", "int32", "int64", "byte", "date-time":
		delete(out, "format")
	}
	return out
}

// quantity may be a number or a string, with a suffix such as Gi, m or e3
// (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity).
const quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity"

// loosen replaces definitions that are too strict.
func (d Definitions) loosen() Definitions {
	out := maps.Clone(d)
	out[quantity] = map[string]any{"type": []any{"string", "number"},
		"pattern": `^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`}
	return out
}
