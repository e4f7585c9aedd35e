package grid

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func create() optimizer.Optimizer { return New(defaultPoints) }

func TestConformance(t *testing.T) { optimizertest.RunUnseeded(t, create) }

// names writes the suggested points, with the parameters in their order.
func names(s *optimizertest.Session, parameters ...string) []string {
	var all []string
	for _, b := range s.Suggested {
		var values []string
		for _, name := range parameters {
			switch v := b.Point[name].(type) {
			case nil:
				values = append(values, "-")
			case float64:
				values = append(values, fmt.Sprintf("%.6g", v))
			default:
				values = append(values, fmt.Sprint(v))
			}
		}
		all = append(all, strings.Join(values, " "))
	}
	return all
}

// A finite grid is every combination once, the last parameter changing fastest, as in
// itertools.product of Python; batches of any size continue it.
func TestOrder(t *testing.T) {
	space := optimizertest.Space(t, []study.Parameter{
		{Name: "optimizer", Type: study.Categorical, Values: []any{"adam", "sgd"}},
		{Name: "rate", Type: study.Float, Min: new(0.1), Max: new(0.3), Step: new(0.1)},
		{Name: "layers", Type: study.Int, Min: new(1.0), Max: new(2.0)},
	}, nil)
	s := optimizertest.NewSession(t, create(), space, 1)
	for _, n := range []int{1, 4, 7} {
		s.Ask(n)
	}
	want := []string{
		"adam 0.1 1", "adam 0.1 2", "adam 0.2 1", "adam 0.2 2", "adam 0.3 1", "adam 0.3 2",
		"sgd 0.1 1", "sgd 0.1 2", "sgd 0.2 1", "sgd 0.2 2", "sgd 0.3 1", "sgd 0.3 2",
	}
	if diff := cmp.Diff(want, names(s, "optimizer", "rate", "layers")); diff != "" {
		t.Errorf("(-product +suggested):\n%s", diff)
	}
}

// A float without steps has both ends and evenly spaced values between, on its scale; then a grid with
// the middles follows, which repeats nothing.
func TestFloatsAndFinerGrids(t *testing.T) {
	space := optimizertest.Space(t, []study.Parameter{
		{Name: "rate", Type: study.Float, Min: new(1.0), Max: new(100.0), Scale: study.Log},
		{Name: "momentum", Type: study.Bool},
	}, nil)
	s := optimizertest.NewSession(t, New(2), space, 1)
	for range 10 {
		s.Ask(1)
	}
	want := []string{
		"1 false", "1 true", "100 false", "100 true", // 2 values
		"10 false", "10 true", // 3 values, without those
		"3.16228 false", "3.16228 true", "31.6228 false", "31.6228 true", // 5
	}
	if diff := cmp.Diff(want, names(s, "rate", "momentum")); diff != "" {
		t.Errorf("(-grid +suggested):\n%s", diff)
	}
}

// Points that constraints exclude are left out, and so are those that differ only in inactive parameters.
func TestConstraintsAndConditions(t *testing.T) {
	space := optimizertest.Space(t, []study.Parameter{
		{Name: "momentum", Type: study.Bool},
		{Name: "decay", Type: study.Float, Min: new(0.0), Max: new(1.0), When: map[string][]any{"momentum": {true}}},
		{Name: "width", Type: study.Int, Min: new(1.0), Max: new(3.0)},
	}, []string{"width != 2"})
	s := optimizertest.NewSession(t, New(3), space, 1)
	s.Ask(8)
	want := []string{"false - 1", "false - 3", "true 0 1", "true 0 3", "true 0.5 1", "true 0.5 3", "true 1 1", "true 1 3"}
	if diff := cmp.Diff(want, names(s, "momentum", "decay", "width")); diff != "" {
		t.Errorf("(-grid +suggested):\n%s", diff)
	}
}
