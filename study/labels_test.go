package study_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/study"
)

// TestCheckLabels holds the forms that Kubernetes accepts, and the bounds.
func TestCheckLabels(t *testing.T) {
	many, long := map[string]string{}, map[string]string{}
	for i := range study.MaxLabels + 1 {
		many[fmt.Sprintf("k%d", i)] = ""
	}
	for i := range study.MaxLabels { // 63 bytes and up to 63 more
		long[fmt.Sprintf("k%062d", i)] = strings.Repeat("v", i)
	}
	for name, test := range map[string]struct {
		labels map[string]string
		want   string // "" for none
	}{
		"none":         {nil, ""},
		"plain":        {map[string]string{"team": "vision", "a.b_c-d": "1.2-rc_3", "empty": ""}, ""},
		"prefix":       {map[string]string{"example.com/team": "vision"}, ""},
		"longest":      {map[string]string{strings.Repeat("k", 63): strings.Repeat("v", 63)}, ""},
		"empty key":    {map[string]string{"": "x"}, `labels: "" is not a label's key`},
		"space":        {map[string]string{"a b": "x"}, `labels: "a b" is not a label's key`},
		"dash":         {map[string]string{"-a": "x"}, `labels: "-a" is not a label's key`},
		"slashes":      {map[string]string{"a/b/c": "x"}, `labels: "a/b/c" is not a label's key`},
		"long key":     {map[string]string{strings.Repeat("k", 64): "x"}, "want at most 63 letters"},
		"value":        {map[string]string{"team": "a b"}, `labels.team: "a b" is not a label's value`},
		"long value":   {map[string]string{"team": strings.Repeat("v", 64)}, "labels.team: "},
		"too many":     {many, "labels: there are 65 labels: at most 64 are accepted"},
		"many bytes":   {long, "bytes: at most 4096 are accepted"},
		"upper domain": {map[string]string{"Example.com/a": "x"}, "is not a label's key"},
	} {
		var texts []string
		for _, p := range study.CheckLabels("labels", test.labels) {
			texts = append(texts, p.String())
		}
		got := strings.Join(texts, "\n")
		if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Kubernetes' own checks accept the same keys and values, and the same names.
func TestLabelsAreThoseOfKubernetes(t *testing.T) {
	texts := rapid.StringMatching(`[aA0._/\-é ]{0,8}|[a-z0-9.]{61,64}(/[aA0._-]{0,65})?|[a-z.-]{250,256}/a`)
	rapid.Check(t, func(t *rapid.T) {
		text := texts.Draw(t, "text")
		for what, both := range map[string][2]bool{
			"key":   {len(study.CheckLabels("", map[string]string{text: ""})) == 0, len(validation.IsQualifiedName(text)) == 0},
			"value": {len(study.CheckLabels("", map[string]string{"k": text})) == 0, len(validation.IsValidLabelValue(text)) == 0},
			"name":  {study.IsName(text), len(validation.IsDNS1123Label(text)) == 0},
		} {
			if both[0] != both[1] {
				t.Errorf("%q as a %s: %t here and %t in Kubernetes", text, what, both[0], both[1])
			}
		}
	})
}

func TestCheckNote(t *testing.T) {
	if p := study.CheckNote("note", strings.Repeat("n", study.MaxNote)); len(p) > 0 {
		t.Errorf("the longest note: %v", p)
	}
	for _, note := range []string{strings.Repeat("n", study.MaxNote+1), "\xff"} {
		if p := study.CheckNote("note", note); len(p) != 1 || p[0].Path != "note" {
			t.Errorf("a note of %d bytes: %v, want a problem of the field note", len(note), p)
		}
	}
}

func TestHasLabels(t *testing.T) {
	labels := map[string]string{"a": "1", "b": ""}
	for _, test := range []struct {
		wanted map[string]string
		want   bool
	}{
		{nil, true}, {map[string]string{"a": "1"}, true}, {map[string]string{"a": "1", "b": ""}, true},
		{map[string]string{"a": "2"}, false}, {map[string]string{"c": ""}, false},
	} {
		if got := study.HasLabels(labels, test.wanted); got != test.want {
			t.Errorf("%v has %v: %v", labels, test.wanted, got)
		}
	}
}

// TestAttributes sets, changes and removes attributes, and tells which are too large.
func TestAttributes(t *testing.T) {
	old := map[string]any{"a": 1.0, "b": "x"}
	got := study.WithAttributes(old, map[string]any{"b": nil, "c": []any{true}})
	if diff := cmp.Diff(map[string]any{"a": 1.0, "c": []any{true}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(old) != 2 {
		t.Error("the old attributes have changed")
	}
	if got := study.WithAttributes(old, map[string]any{"a": nil, "b": nil}); got != nil {
		t.Errorf("all removed: got %v", got)
	}
	space := study.MaxAttributes - len(`{"k":""}`)
	for extra, want := range []int{0, 1} {
		value := map[string]any{"k": strings.Repeat("x", space+extra)}
		if problems := study.CheckAttributes("attributes", value); len(problems) != want {
			t.Errorf("%d bytes too many: %v", extra, problems)
		}
	}
}
