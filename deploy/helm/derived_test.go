package helm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDerivedFilesAreFresh checks that the schema and the README match values.yaml.
func TestDerivedFilesAreFresh(t *testing.T) {
	files, err := Derived(t.Context(), chart)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		have, err := os.ReadFile(filepath.Join(chart, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(have)); diff != "" {
			t.Errorf("%s is not what values.yaml says: run make manifests\n%s", name, diff)
		}
	}
}

func TestValuesNeedComments(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"a: 1\n", "value a has no comment"},
		{"- a\n", "read the values: want a mapping of names to values"},
		{"# A number\n# @schema {\na: 1\n", `value a: "@schema {": unexpected end of JSON input`},
	} {
		if _, err := ParseValues([]byte(c.file)); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.file, err, c.want)
		}
	}
}

// TestUnknownValuesAreRefused checks that misspelt values are found at every depth.
func TestUnknownValuesAreRefused(t *testing.T) {
	for _, set := range []string{
		"unknown=1", "image.unknown=1", "coordinator.podDisruptionBudget.unknown=1", "poolDefaults.unknown=1",
		"pools.default.unknown=1", "pools.default.state.unknown=1", "nats.bundled.persistence.unknown=1",
		`coordinator.tolerations=[{"unknown":1}]`, `pools.default.resources={"unknown":{}}`, `networkPolicy.apiFrom=[{"unknown":{}}]`,
		`pools.default.slots=0`, `pools.helm-test={}`, `pools.Upper={}`, `nats.bundled.replicas=2`,
		`coordinator.leaseTTL="1s"`, `telemetry.otlpEndpoint="collector:4318"`, `pools.default.heartbeat="0s"`, `nats.streamReplicas=3`,
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			if out, err := run(t, "helm", append([]string{"template", "f", chart}, values(set)...)...); err == nil {
				t.Errorf("rendered:\n%.200s", out)
			}
		})
	}
}
