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
		maps.Copy(out, namesOf(strings.ToLower(v.Path[len(v.Path)-1])))
	}
	if _, ref := v.Schema["$ref"]; ref {
		out = map[string]any{"description": v.Doc}
	}
	maps.Copy(out, v.Schema)
	maps.Copy(out, programChecks()[v.Name()])
	checkNames(out)
	return out
}

// The names that Kubernetes accepts of labels and annotations, and of variables; and the values of labels.
const (
	labelName    = `^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	labelValue   = `^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`
	variableName = `^[A-Za-z_][A-Za-z0-9_]*$`
)

// namesOf is the schema of a map of texts by what it is called: what Kubernetes accepts.
func namesOf(name string) map[string]any {
	key := map[string]any{"pattern": labelName,
		"description": "1 to 63 letters, digits and, between them, -, _ and ., perhaps after a DNS name and /"}
	switch {
	case strings.HasSuffix(name, "labels"), name == "nodeselector":
		return map[string]any{"propertyNames": key, "additionalProperties": map[string]any{"type": "string", "pattern": labelValue}}
	case strings.HasSuffix(name, "annotations"):
		return map[string]any{"propertyNames": key}
	case name == "env":
		return map[string]any{"propertyNames": map[string]any{"pattern": variableName,
			"description": "the name of a variable: letters, digits and _"}}
	}
	return nil
}

// checkNames replaces what a schema says of the names in a map. Helm reports a name that propertyNames refuses at
// the place of some other value. So a name that is not accepted gets a value that nobody sets, which says what is
// accepted: Helm reports that at the name.
func checkNames(schema map[string]any) {
	names, ok := schema["propertyNames"].(map[string]any)
	if !ok {
		return
	}
	none := func(want string) map[string]any {
		return map[string]any{"const": "under another name: " + want}
	}
	schema["patternProperties"] = map[string]any{fmt.Sprint(names["pattern"]): schema["additionalProperties"]}
	schema["additionalProperties"] = none(fmt.Sprint(names["description"]))
	if not, ok := names["not"].(map[string]any); ok {
		schema["properties"] = map[string]any{fmt.Sprint(not["const"]): none("this one is the chart's own")}
	}
	delete(schema, "propertyNames")
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
