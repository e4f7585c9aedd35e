package migrate

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

// testdata/attributes.db and attributes.log were made by Optuna itself: testdata/make_attributes.py says
// what is in them. NaN is a text, since JSON has none, and None is what an attribute is without a value.
func TestOptunaStudyAttributes(t *testing.T) {
	want := map[string]any{
		"data set": "digits é", "sizes": []any{int64(64), 0.5, map[string]any{"deep": true}}, "best": "NaN",
		"long": strings.Repeat("x", 2000), "longer": strings.Repeat("x", 2040),
	}
	for _, path := range stored("attributes") {
		s, notes := optunaStudyOf(t, path, "noted", 0)
		if diff := cmp.Diff(want, s.Spec.Attributes); diff != "" || strings.Contains(notes, "attributes") {
			t.Errorf("%s: attributes (-want +got):\n%s\nnotes:\n%s", path, diff, notes)
		}
	}
}

// Attributes that a study cannot have are left out, and the note names them.
func TestOptunaStudyAttributesLeftOut(t *testing.T) {
	const float = `{"name": "FloatDistribution", "attributes": {"step": null, "low": 0, "high": 1, "log": false}}`
	noted := func(name, value string) string {
		return `{"op_code": 2, "worker_id": "w", "study_id": 0, "user_attr": {` + strconv.Quote(name) + `: ` + value + `}}`
	}
	fits := `"` + strings.Repeat("b", study.MaxAttributes-len(`{"a":1,"b":""}`)) + `"`
	for _, tt := range []struct {
		name, note string
		lines      []string
		kept       []string
	}{
		{"just fit", "", []string{noted("a", "1"), noted("b", fits)}, []string{"a", "b"}},
		{"one byte more", `left out: 1 of 2 ("b")`, []string{noted("a", "10"), noted("b", fits)}, []string{"a"}},
		{"smaller ones after it", `left out: 1 of 3 ("b")`, []string{noted("a", "10"), noted("b", fits), noted("c", "1")}, []string{"a", "c"}},
		{"no number", `left out: 1 of 2 ("a")`, []string{noted("a", "1e400"), noted("b", "1")}, []string{"b"}},
		{"many", `left out: 6 of 6 ("a", "b", "c", "d", "e", …)`,
			[]string{noted("a", "1e400"), noted("b", "1e400"), noted("c", "1e400"), noted("d", "1e400"), noted("e", "1e400"), noted("f", "1e400")},
			nil},
	} {
		s, notes := optunaStudyOf(t, journalOf(t, append(tt.lines, addedWhole("1", "x", float, "0.5"))...), "s", 0)
		if !strings.Contains(notes, tt.note) || tt.note == "" && strings.Contains(notes, "left out") {
			t.Errorf("%s: the notes lack %q:\n%s", tt.name, tt.note, notes)
		}
		if len(s.Spec.Attributes) != len(tt.kept) {
			t.Errorf("%s: %d attributes, want %v", tt.name, len(s.Spec.Attributes), tt.kept)
		}
		for _, name := range tt.kept {
			if s.Spec.Attributes[name] == nil {
				t.Errorf("%s: %s was left out", tt.name, name)
			}
		}
	}
}
