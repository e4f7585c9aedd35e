package crd

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v4"
)

// The chart's definition is the one that the schema of study files makes.
func TestTheChartsDefinitionIsFresh(t *testing.T) {
	want, err := YAML()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../deploy/helm/fantasia/crds/study-crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("deploy/helm/fantasia/crds/study-crd.yaml is stale: run make generate (-want +got)\n%s", diff)
	}
}

// Every rule and every bound is of a definition that there is.
func TestRulesHaveTheirDefinitions(t *testing.T) {
	spec, err := specSchema()
	if err != nil {
		t.Fatal(err)
	}
	placed := 1 // the root's
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case object:
			if _, ok := v["x-kubernetes-validations"]; ok {
				placed++
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(spec)
	if placed != len(rules) {
		t.Errorf("%d definitions have rules in the schema, %d in the table", placed, len(rules))
	}
}

// A structural schema gives every field a type, or says that it is free.
func TestEveryFieldHasAType(t *testing.T) {
	text, err := YAML()
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					Root object `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	fields := 0
	var check func(path string, schema object)
	check = func(path string, schema object) {
		fields++
		if free, _ := schema["x-kubernetes-preserve-unknown-fields"].(bool); schema["type"] == nil && !free {
			t.Errorf("%s has no type", path)
		}
		for _, key := range []string{"items", "additionalProperties"} {
			if inner, ok := schema[key].(object); ok {
				check(path+"."+key, inner)
			}
		}
		properties, _ := schema["properties"].(object)
		for name, inner := range properties {
			check(path+"."+name, inner.(object))
		}
	}
	check("", definition.Spec.Versions[0].Schema.Root)
	if fields < 60 {
		t.Errorf("found only %d fields", fields)
	}
}

// An API server leaves a priority of 0 out. Whoever applied a text with one after somebody else would be in conflict with them, as helm
// install after kubectl apply.
func TestNothingThatAServerLeavesOut(t *testing.T) {
	text, err := YAML()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "priority: 0") {
		t.Error("a column has the priority 0")
	}
}
