package optimizertest

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// Mixed returns a space with each type and scale of parameter, conditions
// within conditions, and a constraint.
func Mixed(t testing.TB, initial ...map[string]any) *space.Space {
	t.Helper()
	return Space(t, []study.Parameter{
		{Name: "lr", Type: study.Float, Min: at(1e-5), Max: at(1), Scale: study.Log},
		{Name: "width", Type: study.Int, Min: at(16), Max: at(256), Scale: study.Log},
		{Name: "drop", Type: study.Float, Min: at(0.01), Max: at(0.99), Scale: study.Logit},
		{Name: "decay", Type: study.Float, Min: at(0), Max: at(1), Step: at(0.25)},
		{Name: "solver", Type: study.Categorical, Values: []any{"adam", "sgd", "lbfgs"}},
		{Name: "momentum", Type: study.Float, Min: at(0), Max: at(0.99), When: map[string][]any{"solver": {"sgd"}}},
		{Name: "nesterov", Type: study.Bool, When: map[string][]any{"solver": {"sgd"}}},
		{Name: "warmup", Type: study.Int, Min: at(0), Max: at(9), When: map[string][]any{"nesterov": {true}}},
		{Name: "batch", Type: study.Ordinal, Values: []any{int64(16), int64(32), int64(64)}},
		{Name: "epochs", Type: study.Fixed, Value: int64(3)},
	}, []string{"width * lr <= 10"}, initial...)
}

// SmallSize is the number of feasible points of Small: two of a, two of b, and
// three of c and d together.
const SmallSize = 2 * 2 * 3

// Small returns a finite space with a condition and a constraint.
func Small(t testing.TB) *space.Space {
	t.Helper()
	return Space(t, []study.Parameter{
		{Name: "a", Type: study.Int, Min: at(1), Max: at(3)},
		{Name: "b", Type: study.Bool},
		{Name: "c", Type: study.Categorical, Values: []any{"x", "y"}},
		{Name: "d", Type: study.Int, Min: at(0), Max: at(1), When: map[string][]any{"c": {"y"}}},
	}, []string{"a <= 2"})
}

func at(v float64) *float64 { return &v }
