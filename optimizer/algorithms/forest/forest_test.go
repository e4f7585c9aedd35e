package forest

import (
	"math"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

func defaults(t testing.TB) Options { return FromSettings(optimizertest.Defaults(t, Settings())) }

func BenchmarkSuggest(b *testing.B) {
	optimizertest.Benchmark(b, func() optimizer.Optimizer { return New(defaults(b)) }, 120, 1000)
}

func TestConformance(t *testing.T) {
	for name, o := range map[string]Options{"defaults": defaults(t), "from the first result": {Initial: 1, Trees: 2, Leaf: 3}} {
		t.Run(name, func(t *testing.T) { optimizertest.Run(t, func() optimizer.Optimizer { return New(o) }) })
	}
}

// branches has a category that decides which number counts; a number is good near 0.9 in
// branch a, and near 0.1, but worse by 0.2, in branch b; branch c is bad.
func branches(t *testing.T) (*space.Space, func(study.Point) float64) {
	zero, one := 0.0, 1.0
	space := optimizertest.Space(t, []study.Parameter{
		{Name: "branch", Type: study.Categorical, Values: []any{"a", "b", "c"}},
		{Name: "xa", Type: study.Float, Min: &zero, Max: &one, When: map[string][]any{"branch": {"a"}}},
		{Name: "xb", Type: study.Float, Min: &zero, Max: &one, When: map[string][]any{"branch": {"b"}}},
		{Name: "noise", Type: study.Int, Min: &zero, Max: &one},
	}, nil)
	return space, func(p study.Point) float64 {
		if x, ok := p["xa"].(float64); ok {
			return math.Abs(x - 0.9)
		}
		if x, ok := p["xb"].(float64); ok {
			return 0.2 + math.Abs(x-0.1)
		}
		return 2
	}
}

// The forest learns which branch is good, and where in it, asynchronously too. At random,
// a tenth of the points in branch a, a third of all, are within 0.05 of its best.
func TestFindsTheGoodBranch(t *testing.T) {
	space, f := branches(t)
	for _, parallelism := range []int{1, 8} {
		s := optimizertest.NewSession(t, New(defaults(t)), space, 1)
		s.Run(60, parallelism, f)
		good := 0
		for _, o := range s.Problem.Observations[30:] {
			if o.Values.First() < 0.05 {
				good++
			}
		}
		if s.Best() > 0.01 || good < 12 {
			t.Errorf("%d at once: the best value is %g, and %d of the last 30 points are near the best", parallelism, s.Best(), good)
		}
	}
}

// Inactive parameters have a place of their own.
func TestRows(t *testing.T) {
	space, _ := branches(t)
	c := newCoder(optimizer.NewEncoding(space))
	row := c.row(study.Point{"branch": "b", "xb": 0.25, "noise": int64(1)})
	if want := []float64{1, inactive, 0.25, 0.75}; len(row) != 4 || row[0] != want[0] || row[1] != want[1] || row[2] != want[2] ||
		row[3] != want[3] {
		t.Errorf("row %v, want %v", row, want)
	}
}

// The outcomes keep the order of the values, and a failure is as bad as the worst.
func TestOutcomes(t *testing.T) {
	p := &optimizer.Problem{Direction: study.Maximize}
	for _, v := range []float64{1, 5, 3, math.NaN(), -200} {
		o := optimizer.Observation{Outcome: optimizer.OutcomeCompleted, Values: study.Values{v}}
		if math.IsNaN(v) {
			o = optimizer.Observation{Outcome: optimizer.OutcomeFailed}
		}
		p.Observations = append(p.Observations, o)
	}
	y := outcomes(p)
	if !(y[1] < y[2] && y[2] < y[0] && y[0] < y[4] && y[3] == y[4]) {
		t.Errorf("outcomes %v of 5, 3, 1, failed and -200, to be maximised", y)
	}
	for _, v := range y {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("outcomes %v", y)
		}
	}
	for value, same := range map[float64]int{3: 2, 1e9: 1, -1e9: 4} {
		stopped := *p
		stopped.Observations = append(
			slices.Clone(p.Observations), optimizer.Observation{Outcome: optimizer.OutcomePruned, Values: study.Values{value}},
		)
		if y := outcomes(&stopped); y[5] != y[same] {
			t.Errorf("stopped early at %g: outcome %g, want that of observation %d, %g", value, y[5], same, y[same])
		}
	}
	equal := &optimizer.Problem{Direction: study.Minimize, Observations: []optimizer.Observation{
		{Outcome: optimizer.OutcomeFailed}, {Outcome: optimizer.OutcomeCompleted, Values: study.Values{7}},
	}}
	if y := outcomes(equal); !(y[0] > y[1]) {
		t.Errorf("a failure beside a value has %v", y)
	}
}

// Where evaluations are noisy, a point whose neighbours are good is recommended, not one
// lucky value among bad ones.
func TestRecommendsAgainstLuck(t *testing.T) {
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 1), Direction: study.Minimize, MaxTrials: 100}
	for i := range 40 {
		x := float64(i) / 39
		value := 1.0
		switch {
		case i == 30:
			value = 0.099 // among values of 1
		case i < 10:
			value = 0.1 + 0.001*float64(i%3)
		}
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: study.Point{"x1": x}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{value},
		})
	}
	o := defaults(t)
	o.Leaf = 3
	got, err := optimizer.Recommend(t.Context(), New(o), p, nil)
	if err != nil || got == nil || got.Trial > 10 {
		t.Errorf("recommended %+v, %v; want one of the first 10", got, err)
	}
	if got, err := optimizer.Recommend(t.Context(), New(o), &optimizer.Problem{Space: p.Space, Direction: study.Minimize}, nil); got != nil ||
		err != nil {
		t.Errorf("recommended %+v, %v before anything completed", got, err)
	}
}
