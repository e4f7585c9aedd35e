package space_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

func fidelity(low, high float64) study.Parameter {
	return study.Parameter{Name: "epochs", Type: study.Fidelity, Min: &low, Max: &high}
}

func flag(name string) study.Parameter { return study.Parameter{Name: name, Type: study.Bool} }

// TestSearched checks that the space without the fidelity is the one that the other
// parameters make, wherever the fidelity stands.
func TestSearched(t *testing.T) {
	child := flag("b")
	child.When = map[string][]any{"a": {true}}
	others := []study.Parameter{flag("a"), child}
	want, err := celspace.New(others, nil, []map[string]any{{"a": false}})
	if err != nil {
		t.Fatal(err)
	}
	for place := range 3 {
		params := append(append(append([]study.Parameter{}, others[:place]...), fidelity(1, 9)), others[place:]...)
		s, err := celspace.New(params, nil, []map[string]any{{"a": false}})
		if err != nil {
			t.Fatal(err)
		}
		got := s.Searched()
		if diff := cmp.Diff(want.Parameters(), got.Parameters()); diff != "" {
			t.Errorf("the fidelity at %d (-want +got):\n%s", place, diff)
		}
		if diff := cmp.Diff(want.Initial(), got.Initial()); diff != "" {
			t.Errorf("the fidelity at %d (-want +got):\n%s", place, diff)
		}
		if n, ok := got.Size(); !ok || n != 3 {
			t.Errorf("%d points, %t; want 3", n, ok)
		}
		for _, p := range []study.Point{{"a": false}, {"a": true, "b": false}} {
			if err := got.Check(p); err != nil {
				t.Errorf("%v: %v", p, err)
			}
			whole := s.AtLevel(p, 1)
			if err := s.Check(whole); err != nil || whole["epochs"] != int64(3) {
				t.Errorf("%v at level 1 is %v: %v", p, whole, err)
			}
			if k, ok := s.Level(whole); !ok || k != 1 {
				t.Errorf("%v is at level %d, %t", whole, k, ok)
			}
			if diff := cmp.Diff(p, s.Configuration(whole)); diff != "" {
				t.Error(diff)
			}
			if err := s.Check(p); err == nil {
				t.Errorf("%v has no level and is accepted", p)
			}
		}
	}
}

// TestAFidelityThatMeansNothing checks what is refused, and that the error says why.
func TestAFidelityThatMeansNothing(t *testing.T) {
	second := fidelity(1, 9)
	second.Name = "folds"
	conditional, dependent, stepped := fidelity(1, 9), flag("b"), fidelity(1, 9)
	conditional.When = map[string][]any{"a": {true}}
	dependent.When = map[string][]any{"epochs": {int64(3)}}
	step := 1.0
	stepped.Step = &step
	one := 1
	flat := fidelity(1, 9)
	flat.Reduction = &one
	reduced := flag("b")
	reduced.Reduction = &one
	for name, test := range map[string]struct {
		params      []study.Parameter
		constraints []string
		initial     []map[string]any
		says        string
	}{
		"two": {params: []study.Parameter{flag("a"), fidelity(1, 9), second},
			says: "epochs is a fidelity already: a study has at most one"},
		"alone":     {params: []study.Parameter{fidelity(1, 9)}, says: "there is only a fidelity, which is not searched"},
		"one level": {params: []study.Parameter{flag("a"), fidelity(4, 11)}, says: "11 is less than 3 times min, 4"},
		"below one": {params: []study.Parameter{flag("a"), fidelity(0, 9)},
			says: "0 is not accepted; want a whole number from 1 to 9007199254740991"},
		"fraction":    {params: []study.Parameter{flag("a"), fidelity(1, 9.5)}, says: "9.5 is not accepted"},
		"no bounds":   {params: []study.Parameter{flag("a"), {Name: "epochs", Type: study.Fidelity}}, says: "type fidelity needs min and max"},
		"conditional": {params: []study.Parameter{flag("a"), conditional}, says: "when: is not for type fidelity"},
		"dependent":   {params: []study.Parameter{fidelity(1, 9), dependent}, says: `"epochs" is a fidelity`},
		"step":        {params: []study.Parameter{flag("a"), stepped}, says: "step: is not for type fidelity"},
		"reduction":   {params: []study.Parameter{flag("a"), flat}, says: "1 is not accepted; want a whole number from 2"},
		"of another":  {params: []study.Parameter{flag("a"), reduced}, says: "reduction: is not for type bool"},
		"constraint":  {params: []study.Parameter{flag("a"), fidelity(1, 9)}, constraints: []string{"epochs < 5"}, says: "epochs is a fidelity"},
		"initial": {params: []study.Parameter{flag("a"), fidelity(1, 9)}, initial: []map[string]any{{"a": true, "epochs": 3}},
			says: "every initial point starts at its lowest level"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := celspace.New(test.params, test.constraints, test.initial)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v; want %q", err, test.says)
			}
		})
	}
}
