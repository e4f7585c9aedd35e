package file_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/study"
	studyfile "github.com/fantasia-hpo/fantasia/study/file"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/study.schema.json anew")

const schemaFile = "testdata/study.schema.json"

// TestSchemaFile compares the copy in testdata, which people and editors can read, with
// what the program prints.
func TestSchemaFile(t *testing.T) {
	if *rewrite {
		if err := os.WriteFile(schemaFile, studyfile.JSONSchema(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(studyfile.JSONSchema())); diff != "" {
		t.Errorf("run go test ./study -run TestSchemaFile -rewrite (-file +schema):\n%s", diff)
	}
}

// TestSchemaFields compares the schema's definitions with the fields of the Go types:
// the same names, each described, and required if the file must have them.
func TestSchemaFields(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties           map[string]struct{ Description string }
			Required             []string
			AdditionalProperties *bool
		} `json:"$defs"`
	}
	if err := json.Unmarshal(studyfile.JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	types := []reflect.Type{
		reflect.TypeFor[study.Study](), reflect.TypeFor[study.Metadata](), reflect.TypeFor[study.Spec](),
		reflect.TypeFor[study.Objective](), reflect.TypeFor[study.FrontGoal](), reflect.TypeFor[study.Limit](),
		reflect.TypeFor[study.Algorithm](), reflect.TypeFor[study.EarlyStopping](), reflect.TypeFor[study.Budget](),
		reflect.TypeFor[study.TrialTemplate](), reflect.TypeFor[study.Metrics](), reflect.TypeFor[study.Retries](),
		reflect.TypeFor[study.Parameter](), reflect.TypeFor[study.Prior](), reflect.TypeFor[study.Job](), reflect.TypeFor[study.JobMetadata](),
		reflect.TypeFor[study.Cost](), reflect.TypeFor[study.Earlier](), reflect.TypeFor[study.EarlierTrial](),
		reflect.TypeFor[study.StopWhen](),
	}
	if len(schema.Defs) != len(types) {
		t.Errorf("definitions of %v", slices.Sorted(maps.Keys(schema.Defs)))
	}
	for _, typ := range types {
		def := schema.Defs[typ.Name()]
		var fields, required []string
		for i := range typ.NumField() {
			name, options, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			fields = append(fields, name)
			if options == "" {
				required = append(required, name)
			}
			if def.Properties[name].Description == "" {
				t.Errorf("%s.%s is not described", typ.Name(), name)
			}
		}
		if typ == reflect.TypeFor[study.Metadata]() { // those of a resource, which only Kubernetes reads
			fields = append(fields, "annotations", "namespace")
		}
		slices.Sort(fields)
		if diff := cmp.Diff(fields, slices.Sorted(maps.Keys(def.Properties))); diff != "" {
			t.Errorf("%s (-fields +properties):\n%s", typ.Name(), diff)
		}
		if diff := cmp.Diff(required, def.Required); diff != "" {
			t.Errorf("%s required (-fields +schema):\n%s", typ.Name(), diff)
		}
		if def.AdditionalProperties == nil || *def.AdditionalProperties {
			t.Errorf("%s takes fields that it does not have", typ.Name())
		}
	}
}

// TestSchemaJudges checks that the schema accepts the good files, and refuses bad files
// whose problem is one of form.
func TestSchemaJudges(t *testing.T) {
	schema := compileSchema(t)
	// The problems of these files concern several fields, the meaning of a text,
	// features of YAML that JSON lacks, or the known algorithms.
	beyond := []string{
		"algorithm", "command", "constraints", "cost-group", "cost-none", "cycle", "dashes", "documents", "duplicates", "early", "empty",
		"goal-one", "initial", "job-empty",
		"job-kind", "job-stream",
		"jointly-unsatisfiable", "merge", "metrics-events", "metrics-file", "metrics-group", "metrics-pattern", "metrics-regexp", "settings",
		"stop-when-algorithm", "stop-when-fidelity", "stop-when-limits", "stop-when-per-cost", "stop-when-several",
		"stopping", "stopping-file", "stopping-rule", "stream", "syntax", "unsatisfiable",
	}
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if slices.Contains(beyond, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := yaml.Unmarshal(data, &value); err != nil {
				t.Fatal(err)
			}
			err = schema.Validate(value)
			if good := filepath.Base(filepath.Dir(file)) == "good"; (err == nil) != good {
				t.Errorf("the schema says %v", err)
			}
		})
	}
}

// TestSchemaTakesCanonicalJSON checks that the canonical form of a study is valid.
func TestSchemaTakesCanonicalJSON(t *testing.T) {
	schema := compileSchema(t)
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		s, err := parseFile(t, file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(studyfile.JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("study.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("study.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}
