package tpe

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

func defaults(t testing.TB) Options { return FromSettings(optimizertest.Defaults(t, Settings())) }

func BenchmarkSuggest(b *testing.B) {
	optimizertest.Benchmark(b, func() optimizer.Optimizer { return New(defaults(b)) }, 120, 1000, 10000)
}

func TestConformance(t *testing.T) {
	for name, o := range map[string]Options{"defaults": defaults(t), "from the first result": {Initial: 1, Candidates: 3}} {
		t.Run(name, func(t *testing.T) { optimizertest.Run(t, func() optimizer.Optimizer { return New(o) }) })
	}
}

// sphere is a study of 3 numbers whose best point is at 0.7 in each.
func sphere(p study.Point) float64 {
	var sum float64
	for _, name := range []string{"x1", "x2", "x3"} {
		d := p[name].(float64) - 0.7
		sum += d * d
	}
	return sum
}

// The points approach a minimum, with 8 at once as well as one by one: of 40 uniform
// points in the cube, the best is 0.2 away in the mean, squared 0.04.
func TestSearchesNearGoodPoints(t *testing.T) {
	for _, parallelism := range []int{1, 8} {
		var sum float64
		const seeds = 5
		for seed := range uint64(seeds) {
			s := optimizertest.NewSession(t, New(defaults(t)), optimizertest.Cube(t, 3, 0, 1), seed)
			s.Run(100, parallelism, sphere)
			sum += s.Best()
		}
		if mean := sum / seeds; mean > 0.01 {
			t.Errorf("%d at once: the best of 100 points has %.4f in the mean, want under 0.01", parallelism, mean)
		}
	}
}

// observed is a study with the given points evaluated, in order, to those values; NaN is a
// failure.
func observed(t *testing.T, space *space.Space, points []study.Point, values []float64) *optimizertest.Session {
	t.Helper()
	s := optimizertest.NewSession(t, New(Options{Initial: 1, Candidates: 24}), space, 1)
	for i, p := range points {
		o := optimizer.Observation{Trial: i + 1, Point: p, Outcome: optimizer.OutcomeCompleted, Values: study.Values{values[i]}}
		if math.IsNaN(values[i]) {
			o.Outcome, o.Values = optimizer.OutcomeFailed, nil
		}
		s.Problem.Observations = append(s.Problem.Observations, o)
	}
	s.Problem.First = len(points) + 1
	return s
}

// Points that fail, and those that are being evaluated, are avoided like bad ones.
func TestFailuresAndPendingPointsCountAsBad(t *testing.T) {
	space := optimizertest.Cube(t, 1, 0, 1)
	var points []study.Point
	var values []float64
	for i := range 20 {
		points = append(points, study.Point{"x1": float64(i) / 40}) // all in the lower half
		values = append(values, math.NaN())
	}
	s := observed(t, space, points, values)
	upper := 0
	for _, b := range s.Ask(20) {
		if b.Point["x1"].(float64) > 0.5 {
			upper++
		}
	}
	if upper < 15 {
		t.Errorf("after failures in the lower half, %d of 20 points are in the upper one", upper)
	}
	s = observed(t, space, []study.Point{{"x1": 0.5}}, []float64{1})
	for i := range 20 {
		s.Problem.Pending = append(s.Problem.Pending, optimizer.Pending{Trial: i + 2, Point: points[i]})
	}
	s.Problem.First = 22
	if x := s.Ask(1)[0].Point["x1"].(float64); x < 0.5 {
		t.Errorf("with all pending points in the lower half, suggested %g", x)
	}
}

// In a space with conditions, what is good under one branch is learnt from the points of
// that branch alone: x is good near 0.9 in branch a, and near 0.1 in branch b.
func TestBranchesHaveDensitiesOfTheirOwn(t *testing.T) {
	zero, one := 0.0, 1.0
	space := optimizertest.Space(t, []study.Parameter{
		{Name: "branch", Type: study.Categorical, Values: []any{"a", "b"}},
		{Name: "xa", Type: study.Float, Min: &zero, Max: &one, When: map[string][]any{"branch": {"a"}}},
		{Name: "xb", Type: study.Float, Min: &zero, Max: &one, When: map[string][]any{"branch": {"b"}}},
	}, nil)
	if groups := newGroups(optimizer.NewEncoding(space)); len(groups) != 3 {
		t.Fatalf("%d groups, want one for the branch and one for each of its sides", len(groups))
	}
	s := optimizertest.NewSession(t, New(defaults(t)), space, 3)
	s.Run(120, 4, func(p study.Point) float64 {
		if x, ok := p["xa"].(float64); ok {
			return math.Abs(x - 0.9)
		}
		return math.Abs(p["xb"].(float64) - 0.1)
	})
	near, late := 0, s.Problem.Observations[60:]
	for _, o := range late {
		if o.Values.First() < 0.15 {
			near++
		}
	}
	if near < len(late)/2 {
		t.Errorf("%d of the last %d points are within 0.15 of their branch's best, want half", near, len(late))
	}
}

// Draws that break a constraint are not taken, also where few satisfy it.
func TestConstraintsHoldForDraws(t *testing.T) {
	space := optimizertest.Space(t, optimizertest.Cube(t, 3, 0, 1).Parameters(), []string{"x1 + x2 <= 0.1"})
	s := optimizertest.NewSession(t, New(defaults(t)), space, 1)
	s.Run(40, 4, sphere) // the session checks every point
	models := 0
	for _, b := range s.Suggested {
		if b.Source == optimizer.SourceModel && b.Reasons.Acquisition != nil {
			models++
		}
	}
	if models < 20 {
		t.Errorf("%d of 40 points were chosen by the densities", models)
	}
}

// A prior decides where the first points lie, and where few results say otherwise.
func TestPriors(t *testing.T) {
	zero, one := 0.0, 1.0
	mean, sd := 0.8, 0.05
	space := optimizertest.Space(t, []study.Parameter{
		{Name: "x", Type: study.Float, Min: &zero, Max: &one, Prior: &study.Prior{Mean: &mean, SD: &sd}},
		{Name: "c", Type: study.Categorical, Values: []any{"a", "b"}, Prior: &study.Prior{Weights: []float64{1, 9}}},
		{Name: "o", Type: study.Ordinal, Values: []any{"s", "m", "l"}, Prior: &study.Prior{Weights: []float64{0.001, 0.001, 1}}},
	}, nil)
	s := optimizertest.NewSession(t, New(defaults(t)), space, 5)
	var far, b, l int
	for _, suggested := range s.Ask(100) {
		if x := suggested.Point["x"].(float64); math.Abs(x-mean) > 3*sd {
			far++
		}
		if suggested.Point["c"] == "b" {
			b++
		}
		if suggested.Point["o"] == "l" {
			l++
		}
	}
	// Normal: 0.3% beyond three deviations. Binomial: 90 ± 3.
	if far > 3 || b < 80 || b > 98 || l < 60 {
		t.Errorf("of 100 first points %d are far from the mean, %d have the likelier choice, %d the likeliest level", far, b, l)
	}
}

func TestRecommendsTheBestValue(t *testing.T) {
	s := observed(t, optimizertest.Cube(t, 1, 0, 1), []study.Point{{"x1": 0.1}, {"x1": 0.2}, {"x1": 0.3}}, []float64{3, 1, math.NaN()})
	got, err := optimizer.Recommend(t.Context(), New(defaults(t)), &s.Problem, nil)
	if err != nil || got == nil || got.Trial != 2 || got.Mean != 1 {
		t.Errorf("recommended %+v, %v", got, err)
	}
}
