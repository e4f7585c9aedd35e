package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

// TestRemarks sets, changes and removes the labels, the note and the attributes of a trial, also after its
// end, and reads them back from the ledger.
func TestRemarks(t *testing.T) {
	r := newRig(t, newSpec(0, 5, 1), Settings{})
	given := Remarks{Labels: map[string]string{"team": "vision", "try": "1"}, Note: "by hand"}
	out := r.step(Add{At: r.now, Point: study.Point{"x": 0.5}, Values: study.Values{1}, Remarks: given})
	if got := out.Answer.Trial; out.Answer.Err != nil || got.Note != given.Note || !cmp.Equal(got.Labels, given.Labels) {
		t.Fatalf("added: %+v", out.Answer)
	}
	note := "looks odd"
	for range 2 {
		out = r.step(Annotate{At: r.now, Trial: 1, Labels: map[string]string{"try": "2", "bad": ""}, Remove: []string{"team", "none"},
			Note: &note})
		if out.Answer.Err != nil || len(out.Trials) != 1 {
			t.Fatalf("annotated: %+v", out)
		}
	}
	r.step(Annotate{At: r.now, Trial: 1, Remove: []string{"bad"}})
	r.restart()
	got, _ := r.e.Trial(1)
	if diff := cmp.Diff(map[string]string{"try": "2"}, got.Labels); diff != "" || got.Note != note {
		t.Errorf("note %q, labels (-want +got):\n%s", got.Note, diff)
	}
	r.step(Annotate{At: r.now, Trial: 1, Remove: []string{"try"}, Note: new(string)})
	if got, _ := r.e.Trial(1); got.Labels != nil || got.Note != "" {
		t.Errorf("all is removed, and the trial has %v and %q", got.Labels, got.Note)
	}
	for _, set := range []map[string]any{{"a": []any{1.0, "b"}, "c": nil, "d": true}, {"d": nil, "e": 2.5}} {
		r.step(Annotate{At: r.now, Trial: 1, Attributes: set})
		r.restart()
	}
	got, _ = r.e.Trial(1)
	if diff := cmp.Diff(map[string]any{"a": []any{1.0, "b"}, "e": 2.5}, got.Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	out = r.step(Annotate{At: r.now, Trial: 1, Attributes: map[string]any{"f": strings.Repeat("x", study.MaxAttributes)}})
	if !errors.Is(out.Answer.Err, ErrInvalid) {
		t.Errorf("attributes that are too large: %v", out.Answer.Err)
	}
	many := map[string]string{}
	for i := range study.MaxLabels + 1 {
		many[fmt.Sprint("k", i)] = "v"
	}
	if out = r.step(Annotate{At: r.now, Trial: 1, Labels: many}); !errors.Is(out.Answer.Err, ErrInvalid) {
		t.Errorf("too many labels: %v", out.Answer.Err)
	}
	if out = r.step(Annotate{At: r.now, Trial: 2}); !errors.Is(out.Answer.Err, ErrNoTrial) {
		t.Errorf("no such trial: %v", out.Answer.Err)
	}
}
