package diagnosis_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

func float(v float64) *float64 { return &v }

// mixed is a space with a category that decides about a parameter, and a constraint.
func mixed(t *testing.T) *space.Space {
	return optimizertest.Space(t, []study.Parameter{
		{Name: "x", Type: study.Float, Min: float(0), Max: float(1)},
		{Name: "n", Type: study.Int, Min: float(1), Max: float(20)},
		{Name: "kind", Type: study.Categorical, Values: []any{"a", "b", "c"}},
		{Name: "extra", Type: study.Float, Min: float(0), Max: float(1), When: map[string][]any{"kind": {"b"}}},
	}, []string{"x + n / 20.0 < 1.7"})
}

// chosenBy returns a study, what its algorithm knew, and what it suggested.
func chosenBy(t *testing.T, algorithm string, settings map[string]any, n int) (*study.Study, *optimizer.Problem, optimizer.Suggestion) {
	t.Helper()
	p := evaluated(t, mixed(t), n+3, 1, func(x []float64, _ *rand.Rand) float64 {
		return (x[0]-0.3)*(x[0]-0.3) + 0.5*(x[1]-0.6)*(x[1]-0.6) + 0.1*x[2]
	})
	for _, o := range p.Observations[n:] {
		p.Pending = append(p.Pending, optimizer.Pending{Trial: o.Trial, Point: o.Point})
	}
	p.Observations, p.First = p.Observations[:n], n+4
	s := named("synthetic", settings)
	s.Spec.Algorithm.Name = algorithm
	o, err := registry.New(algorithm, settings)
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := o.Suggest(t.Context(), p, nil, 1, optimizer.NewRand(p.Seed, p.First))
	if err != nil {
		t.Fatal(err)
	}
	return s, p, made[0]
}

// The lines go through the point that gp suggested. What they say of it is what gp recorded,
// and no other place on them is worth more.
func TestExplainIsTrueToTheSuggestion(t *testing.T) {
	s, p, made := chosenBy(t, "gp", map[string]any{"replicate": false}, 30)
	c, err := diagnosis.Explain(t.Context(), s, p, made.Point, 10)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Own || c.Acquisition != "logei" || c.Ended != 30 || c.Used != 30 || c.Pending != 3 || c.Assumed != 3 || c.Again {
		t.Errorf("%+v", c)
	}
	var names []string
	for _, l := range c.Lines {
		names = append(names, l.Parameter)
		at, _ := study.Number(made.Point[l.Parameter])
		if l.Parameter == "kind" {
			at = float64(slices.Index([]any{"a", "b", "c"}, made.Point["kind"]))
		}
		if len(l.At) != len(l.Expected) || len(l.At) != len(l.Worth) || l.At[l.Here] != at || !slices.IsSorted(l.At) {
			t.Fatalf("%s: the point is at %g, want %g, of %v", l.Parameter, l.At[l.Here], at, l.At)
		}
		// gp transforms no outcomes, so that the median is the mean.
		here := l.Expected[l.Here]
		if sd := (here.High - here.Low) / 2 / 1.959963984540054; math.Abs(here.Median-*made.Reasons.Mean) > 1e-9 ||
			math.Abs(sd-*made.Reasons.SD) > 1e-9 {
			t.Errorf("%s: expects %g ± %g, gp recorded %g ± %g", l.Parameter, here.Median, sd, *made.Reasons.Mean, *made.Reasons.SD)
		}
		if l.Worth[l.Here] < 0.999 {
			t.Errorf("%s: the point is worth %g of the best place on the lines", l.Parameter, l.Worth[l.Here])
		}
		for i, w := range l.Worth {
			if w < 0 || w > 1 || math.IsNaN(w) {
				t.Errorf("%s: at %g worth %g", l.Parameter, l.At[i], w)
			}
		}
		if n := len(l.At); l.Parameter == "n" && n != 20 || l.Parameter == "kind" && n != 3 {
			t.Errorf("%s has %d places", l.Parameter, n)
		}
	}
	slices.Sort(names)
	want := []string{"kind", "n", "x"}
	if made.Point["kind"] == "b" {
		want = []string{"extra", "kind", "n", "x"}
	}
	if !slices.Equal(names, want) {
		t.Errorf("lines of %v, want %v", names, want)
	}
	few, err := diagnosis.Explain(t.Context(), s, p, made.Point, 1)
	if err != nil || len(few.Lines) != 1 || few.Lines[0].Parameter != c.Lines[0].Parameter {
		t.Errorf("of one line: %+v, %v", few, err)
	}
}

// Places that constraints exclude are worth nothing.
func TestExplainKnowsConstraints(t *testing.T) {
	s, p, _ := chosenBy(t, "hebo", nil, 30)
	at := study.Point{"x": 0.9, "n": int64(10), "kind": "a"}
	c, err := diagnosis.Explain(t.Context(), s, p, at, 10)
	if err != nil {
		t.Fatal(err)
	}
	excluded := 0
	for _, l := range c.Lines {
		for i, v := range l.At {
			if l.Parameter == "n" && 0.9+v/20 >= 1.7 {
				if excluded++; l.Worth[i] != 0 {
					t.Errorf("n = %g is worth %g", v, l.Worth[i])
				}
			}
		}
	}
	if excluded != 5 {
		t.Errorf("%d excluded places, want those from 16 to 20", excluded)
	}
}

func TestExplainOfOtherAlgorithms(t *testing.T) {
	for _, name := range []string{"tpe", "cmaes", "forest"} {
		s, p, made := chosenBy(t, name, nil, 24)
		c, err := diagnosis.Explain(t.Context(), s, p, made.Point, 3)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.Own || c.Acquisition != "" || len(c.Lines) == 0 || c.Lines[0].Worth != nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for name, want := range map[string]string{"random": "random chooses points without a model",
		"sobol": "sobol chooses points without a model", "tpe": "10 trials had completed, and its model needs 20"} {
		s, p, made := chosenBy(t, name, nil, 10)
		if _, err := diagnosis.Explain(t.Context(), s, p, made.Point, 3); !errors.Is(err, diagnosis.ErrNoChoice) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	s, p, made := chosenBy(t, "hebo", nil, 30)
	again, err := diagnosis.Explain(t.Context(), s, p, p.Observations[4].Point, 3)
	if err != nil || !again.Again {
		t.Errorf("of an evaluated point: %+v, %v", again, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := diagnosis.Explain(ctx, s, p, made.Point, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}
