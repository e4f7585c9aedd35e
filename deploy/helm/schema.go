package helm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A schema of Kubernetes is named in a comment as {"$ref": "#/$defs/Toleration"};
// these are the packages where such names are looked for.
var definitionPackages = []string{"io.k8s.api.core.v1.", "io.k8s.api.networking.v1.", "io.k8s.api.apps.v1."}

const defs = "#/$defs/"

// ValuesSchema is the JSON Schema of the chart's values: nothing that is not in
// values.yaml is allowed. kubernetes are the definitions of Kubernetes' own types.
func ValuesSchema(root *Value, kubernetes Definitions) ([]byte, error) {
	used := map[string]any{}
	schema := object(root, used)
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	schema["title"] = "Values of the chart fantasia"
	pool := used["pool"]
	all := map[string]any{"pool": pool}
	if err := collect(schema, pool, all, kubernetes); err != nil {
		return nil, err
	}
	schema["$defs"] = all
	out, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(out, '\n'), nil
}

// object is the schema of a group of values.
func object(v *Value, used map[string]any) map[string]any {
	properties := map[string]any{}
	for _, c := range v.Children {
		name := c.Path[len(c.Path)-1]
		switch {
		case len(c.Children) == 0:
			properties[name] = leaf(c)
		case c.Name() == "poolDefaults":
			used["pool"] = object(c, used)
			properties[name] = map[string]any{"$ref": defs + "pool"}
		default:
			properties[name] = object(c, used)
		}
	}
	out := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if v.Doc != "" {
		out["description"] = v.Doc
	}
	return out
}

// leaf is the schema of a value, from what its comment, its default and the programs say.
func leaf(v *Value) map[string]any {
	out := map[string]any{"description": v.Doc}
	switch d := v.Default.(type) {
	case bool:
		out["type"] = "boolean"
	case string:
		out["type"] = "string"
	case int:
		out["type"], out["minimum"] = "integer", 0
	case []any:
		out["type"], out["items"] = "array", map[string]any{"type": "string"}
		if len(d) > 0 {
			if _, number := d[0].(int); number {
				out["items"] = map[string]any{"type": "integer"}
			}
		}
	case map[string]any:
		out["type"], out["additionalProperties"] = "object", map[string]any{"type": "string"}
	}
	if _, ref := v.Schema["$ref"]; ref {
		out = map[string]any{"description": v.Doc}
	}
	maps.Copy(out, v.Schema)
	maps.Copy(out, programChecks()[v.Name()])
	return out
}

// collect adds to all the definitions that a schema refers to, and those that
// they do.
func collect(schema, pool any, all map[string]any, kubernetes Definitions) error {
	wanted := append(references(schema), references(pool)...)
	for len(wanted) > 0 {
		name := wanted[0]
		wanted = wanted[1:]
		if _, have := all[name]; have {
			continue
		}
		definition, err := kubernetes.find(name)
		if err != nil {
			return err
		}
		all[name] = definition
		wanted = append(wanted, references(definition)...)
	}
	return nil
}

// references are the names of the definitions that a schema refers to.
func references(schema any) []string {
	var names []string
	switch s := schema.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(s)) {
			if ref, ok := s[key].(string); ok && key == "$ref" {
				names = append(names, strings.TrimPrefix(ref, defs))
			}
			names = append(names, references(s[key])...)
		}
	case []any:
		for _, e := range s {
			names = append(names, references(e)...)
		}
	}
	return names
}
