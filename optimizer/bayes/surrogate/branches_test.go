package surrogate

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func bound(v float64) *float64 { return &v }

func when(name string, values ...any) map[string][]any { return map[string][]any{name: values} }

// support is a space like that of a support vector machine: one parameter decides whether
// another is active.
func support() []study.Parameter {
	return []study.Parameter{
		{Name: "C", Type: study.Float, Min: bound(0), Max: bound(1)},
		{Name: "kernel", Type: study.Categorical, Values: []any{"rbf", "poly"}},
		{Name: "degree", Type: study.Int, Min: bound(2), Max: bound(5), When: when("kernel", "poly")},
	}
}

// Each value of a deciding parameter is a branch, with the numeric columns that are active
// under it and under another one; columns are in the order of the space.
func TestBranches(t *testing.T) {
	var values []any
	for i := range maxBranchValues + 1 {
		values = append(values, fmt.Sprint(i))
	}
	var many []study.Parameter
	for i := range maxBranchColumns / 2 {
		many = append(many, study.Parameter{Name: fmt.Sprint("x", i), Type: study.Float, Min: bound(0), Max: bound(1)})
	}
	for name, c := range map[string]struct {
		parameters []study.Parameter
		want       []kernel.Branch
	}{
		"one active under one value": {support(),
			[]kernel.Branch{{Column: 1, Code: 0.25, Numeric: []int{0}}, {Column: 1, Code: 0.75, Numeric: []int{0}}}},
		"one active under two of three": {
			[]study.Parameter{
				{Name: "solver", Type: study.Categorical, Values: []any{"adam", "sgd", "lbfgs"}},
				{Name: "momentum", Type: study.Float, Min: bound(0), Max: bound(1), When: when("solver", "adam", "sgd")},
			},
			[]kernel.Branch{{Column: 0, Code: 1. / 6, Numeric: []int{1}}, {Column: 0, Code: 0.5, Numeric: []int{1}}},
		},
		"a category that decides nothing": {append(support()[:1:1], study.Parameter{Name: "a", Type: study.Categorical, Values: []any{"x", "y"}}),
			nil},
		"only categories": {append(support()[1:2:2],
			study.Parameter{Name: "a", Type: study.Categorical, Values: []any{"x", "y"}, When: when("kernel", "rbf")}), nil},
		"too many values": {append(support()[:1:1], study.Parameter{Name: "a", Type: study.Categorical, Values: values},
			study.Parameter{Name: "b", Type: study.Bool, When: when("a", "0")}), nil},
		"too many columns": {append(support(), many...), nil},
	} {
		got := branches(optimizer.NewEncoding(optimizertest.Space(t, c.parameters, nil)))
		if !slices.EqualFunc(got, c.want, func(a, b kernel.Branch) bool {
			return a.Column == b.Column && a.Code == b.Code && slices.Equal(a.Numeric, b.Numeric)
		}) {
			t.Errorf("%s: branches %v, want %v", name, got, c.want)
		}
	}
}

// A flat branch does not make the model sure of another one. Halfway between the only
// two points of the other branch, which lie the whole range apart, the model is unsure.
// Common lengthscales alone would make it sure to a thousandth.
func TestFlatBranchTeachesNothingOfTheOthers(t *testing.T) {
	space := optimizertest.Space(t, support(), nil)
	p := &optimizer.Problem{Space: space, Direction: study.Minimize}
	observe := func(c, value float64, degree int64) {
		point := study.Point{"C": c, "kernel": "rbf"}
		if degree > 0 {
			point = study.Point{"C": c, "kernel": "poly", "degree": degree}
		}
		p.Observations = append(
			p.Observations, optimizer.Observation{Point: point, Outcome: optimizer.OutcomeCompleted, Values: []float64{value}},
		)
	}
	encoding, o := optimizer.NewEncoding(space), DefaultOptions()
	o.Effort = EffortFull
	between := func() float64 {
		m, err := Fit(t.Context(), Observe(p, encoding, o), o, nil, optimizer.NewRand(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		_, variance := m.GP.Posterior(mat.NewDense(1, 3, encoding.Encode(study.Point{"C": 0.5, "kernel": "rbf"})))
		return math.Sqrt(variance[0])
	}
	observe(0, 0.9, 0)
	observe(1, 0.8, 0)
	for degree := int64(2); degree <= 5; degree++ {
		for i := range 4 {
			observe(float64(i)/3, 0.1+0.01*float64(degree), degree)
		}
	}
	if sd := between(); sd < 0.1 {
		t.Errorf("the model is sure to %.2g standard deviations of the outcomes, want at least 0.1", sd)
	}
}
