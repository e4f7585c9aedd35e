// Package crd derives the CustomResourceDefinition of studies from the JSON Schema of
// study files: a structural schema, with CEL rules for conditions on several fields.
package crd

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

//go:embed status.yaml
var statusYAML []byte

type object = map[string]any

// YAML returns the CustomResourceDefinition as text that can be applied.
func YAML() ([]byte, error) {
	spec, err := specSchema()
	if err != nil {
		return nil, err
	}
	var status object
	if err := yaml.Unmarshal(statusYAML, &status); err != nil {
		return nil, fmt.Errorf("read the schema of the status: %w", err)
	}
	root := object{
		"type":        "object",
		"description": "A study: a search space, an objective, a budget, an optimiser and the program to tune.",
		"required":    []any{"spec"},
		"properties": object{
			"apiVersion": object{"type": "string"},
			"kind":       object{"type": "string"},
			"metadata":   object{"type": "object"},
			"spec":       spec,
			"status":     status,
		},
	}
	root["x-kubernetes-validations"] = validations("Study")
	var out bytes.Buffer
	out.WriteString("# Made from the schema of study files by `fantasia schema --crd`: change it there.\n")
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(definition(root)); err != nil {
		return nil, fmt.Errorf("write the definition: %w", err)
	}
	return out.Bytes(), nil
}

// definition returns the resource around its schema.
func definition(schema object) object {
	column := func(name, kind, path, description string, priority int) object {
		c := object{"name": name, "type": kind, "jsonPath": path, "description": description}
		if priority != 0 { // an API server leaves out a 0, and whoever applies the same text again would be in conflict with the first
			c["priority"] = priority
		}
		return c
	}
	return object{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   object{"name": study.Plural + "." + study.Group},
		"spec": object{
			"group": study.Group,
			"scope": "Namespaced",
			"names": object{"kind": study.Kind, "listKind": study.Kind + "List", "plural": study.Plural, "singular": "study",
				"shortNames": []any{"st"}},
			"versions": []any{object{
				"name": study.Version, "served": true, "storage": true,
				"schema":       object{"openAPIV3Schema": schema},
				"subresources": object{"status": object{}},
				"additionalPrinterColumns": []any{
					column("State", "string", ".status.state", "The study's state.", 0),
					column("Accepted", "string", `.status.conditions[?(@.type=="Accepted")].reason`,
						"Whether the study runs with this spec, or why not.", 0),
					column("Done", "integer", ".status.done", "Trials that have ended.", 0),
					column("Trials", "integer", ".spec.budget.maxTrials", "Trials that the study may have.", 0),
					column("Best", "string", ".status.best.text", "The best value seen, rounded.", 0),
					column("Recommended", "string", ".status.recommended.text", "The value to expect at the recommended point, rounded.", 0),
					column("Age", "date", ".metadata.creationTimestamp", "Since the resource was made.", 0),
					column("Front", "integer", ".status.front.size", "Trials on the front of several objectives.", 1),
					column("Hypervolume", "string", ".status.front.text", "What the front dominates, rounded.", 1),
					column("Metric", "string", ".spec.objective.metric", "What is optimised.", 1),
					column("Pool", "string", ".spec.pool", "The workers that evaluate it.", 1),
				},
			}},
		},
	}
}

// specSchema returns the structural schema of a study file's spec.
func specSchema() (object, error) {
	var schema struct {
		Defs map[string]object `json:"$defs"`
	}
	d := json.NewDecoder(bytes.NewReader(file.JSONSchema()))
	d.UseNumber()
	if err := d.Decode(&schema); err != nil {
		return nil, fmt.Errorf("read the schema of study files: %w", err)
	}
	c := converter{defs: schema.Defs}
	spec := c.definition("Spec")
	return spec, c.err
}

// converter converts JSON Schema to structural schemas of Kubernetes.
type converter struct {
	defs map[string]object
	err  error
}

// definition converts a named definition, and adds its rules and limits.
func (c *converter) definition(name string) object {
	def, ok := c.defs[name]
	if !ok {
		c.err = fmt.Errorf("the schema of study files has no definition %q", name)
		return object{}
	}
	out := c.convert(def)
	if rules := validations(name); rules != nil {
		out["x-kubernetes-validations"] = rules
	}
	properties, _ := out["properties"].(object)
	for field, more := range extras[name] {
		property, ok := properties[field].(object)
		if !ok {
			c.err = fmt.Errorf("the schema of study files has no field %s.%s", name, field)
			return out
		}
		maps.Copy(property, more)
	}
	return out
}

// copied are the keywords with the same meaning in both.
var copied = []string{"type", "description", "default", "enum", "pattern", "minimum", "maximum", "minItems", "maxItems", "required"}

func (c *converter) convert(in object) object {
	if ref, ok := in["$ref"].(string); ok {
		out := c.definition(strings.TrimPrefix(ref, "#/$defs/"))
		if text, ok := in["description"]; ok {
			out["description"] = text
		}
		return out
	}
	out := object{}
	for _, key := range copied {
		if v, ok := in[key]; ok {
			out[key] = plain(v)
		}
	}
	if low, ok := in["exclusiveMinimum"]; ok {
		out["minimum"], out["exclusiveMinimum"] = plain(low), true
	}
	if items, ok := in["items"].(object); ok {
		out["items"] = c.convert(items)
	}
	if values, ok := in["additionalProperties"].(object); ok {
		out["additionalProperties"] = c.convert(values)
	}
	if properties, ok := in["properties"].(object); ok {
		fields := object{}
		for name, property := range properties {
			// `true` in JSON Schema is a field that may contain anything.
			schema, _ := property.(object)
			fields[name] = c.convert(schema)
		}
		out["properties"] = fields
	}
	if out["type"] == nil || out["type"] == "object" && out["properties"] == nil && out["additionalProperties"] == nil {
		// Only file.Parse can check this.
		out["x-kubernetes-preserve-unknown-fields"] = true
	}
	return out
}

// plain converts JSON's numbers to Go's, which YAML writes without quotes.
func plain(v any) any {
	n, ok := v.(json.Number)
	if !ok {
		return v
	}
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, err := n.Float64()
	if err != nil {
		return n.String()
	}
	return f
}
