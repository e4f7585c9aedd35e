package cmaes

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	for name, o := range map[string]Options{
		"defaults": defaults(t), "small generations": {Population: 2, Sigma: 0.3, Restarts: IPOP},
		"same": {Population: 3, Sigma: 0.1, Restarts: Same},
	} {
		t.Run(name, func(t *testing.T) { optimizertest.Run(t, func() optimizer.Optimizer { return New(o) }) })
	}
}

// ellipsoid is a function of x1…xd whose minimum of 0 is at 0.3, 100 times as steep
// along the last number as along the first.
func ellipsoid(d int) func(study.Point) float64 {
	return func(p study.Point) float64 {
		var sum float64
		for i := range d {
			v := p[fmt.Sprintf("x%d", i+1)].(float64) - 0.3
			sum += math.Pow(100, float64(i)/float64(d-1)) * v * v
		}
		return sum
	}
}

// The search converges at the rate of the method: with 600 evaluations in 5 dimensions
// to at most 1e-5, one after another, in batches, and asynchronously, where every
// result belongs to an older distribution.
func TestConverges(t *testing.T) {
	for _, parallelism := range []int{1, 4, 8} {
		s := optimizertest.NewSession(t, New(defaults(t)), optimizertest.Cube(t, 5, 0, 1), 1)
		s.Run(600, parallelism, ellipsoid(5))
		if s.Best() > 1e-5 {
			t.Errorf("%d at once: the best of 600 points has %g", parallelism, s.Best())
		}
	}
}

// mixed has a float, an integer, and categories; the minimum of 0 is inside the integer's
// range, at a category that is not the first.
func mixed(t *testing.T) (*space.Space, func(study.Point) float64) {
	zero, one, hundred := 0.0, 1.0, 100.0
	space := optimizertest.Space(t, []study.Parameter{
		{Name: "x", Type: study.Float, Min: &zero, Max: &one},
		{Name: "n", Type: study.Int, Min: &zero, Max: &hundred},
		{Name: "c", Type: study.Categorical, Values: []any{"a", "b", "c", "d"}},
		{Name: "on", Type: study.Bool},
	}, nil)
	return space, func(p study.Point) float64 {
		dx, dn := p["x"].(float64)-0.8, float64(p["n"].(int64)-23)/100
		sum := dx*dx + dn*dn
		if p["c"] != "c" {
			sum += 0.3
		}
		if p["on"] != true {
			sum += 0.1
		}
		return sum
	}
}

// Integers and categories do not freeze at a wrong value: the optimum is found exactly.
func TestFindsIntegersAndCategories(t *testing.T) {
	space, f := mixed(t)
	for seed := range uint64(3) {
		s := optimizertest.NewSession(t, New(defaults(t)), space, seed)
		s.Run(600, 4, f)
		if s.Best() > 1e-5 { // a neighbour of the right integer has 1e-4
			t.Errorf("seed %d: the best of 600 points has %g", seed, s.Best())
		}
	}
}

// Of a function with a hundred local minima, larger populations find the best one, and runs of
// the same size one that is at most the next to it.
func TestRestarts(t *testing.T) {
	rastrigin := func(p study.Point) float64 {
		sum := 0.0
		for _, name := range []string{"x1", "x2"} {
			v := p[name].(float64)
			sum += 10 + v*v - 10*math.Cos(2*math.Pi*v)
		}
		return sum
	}
	for o, most := range map[Options]float64{{Sigma: 0.05, Restarts: IPOP}: 1e-4, {Sigma: 0.05, Restarts: BIPOP}: 1e-4,
		{Sigma: 0.05, Restarts: Same}: 1} {
		s := optimizertest.NewSession(t, New(o), optimizertest.Cube(t, 2, -4.1, 5.9), 2)
		s.Run(6000, 1, rastrigin)
		if s.Best() > most {
			t.Errorf("%s: the best of 6000 points has %g, want at most %g", o.Restarts, s.Best(), most)
		}
		m := newTask(request(s), o).readMemory(s.State)
		if m == nil || m.Run < 1 {
			t.Errorf("%s: no restart in 6000 evaluations: %+v", o.Restarts, m)
		}
	}
}

func request(s *optimizertest.Session) *optimizer.Request {
	return &optimizer.Request{Problem: &s.Problem, Encoding: optimizer.NewEncoding(s.Problem.Space), Rand: optimizer.NewRand(1, 1)}
}

// A study whose state was lost goes on from its results: it converges nearly as well.
func TestLostState(t *testing.T) {
	s := optimizertest.NewSession(t, New(defaults(t)), optimizertest.Cube(t, 3, 0, 1), 4)
	s.Run(150, 4, ellipsoid(3))
	s.State = nil
	s.Run(400, 4, ellipsoid(3))
	if s.Best() > 1e-5 {
		t.Errorf("the best of 400 points has %g, after the state was lost at 150", s.Best())
	}
}

// The state fits in every space, and the answer does not depend on whether it does: with
// 300 columns each request still moves the distribution.
func TestLargeSpaces(t *testing.T) {
	for _, d := range []int{64, 65, 300} {
		s := optimizertest.NewSession(t, New(defaults(t)), optimizertest.Cube(t, d, 0, 1), 1)
		s.Run(60, 30, ellipsoid(d)) // the session checks the state's size
		if m := newTask(request(s), defaults(t)).readMemory(s.State); m == nil || m.Generation == 0 {
			t.Errorf("%d columns: the state holds %+v", d, m)
		}
	}
}

// A failure is left out of the generations: with and without failures in between, the
// results that remain move the distribution to the same place.
func TestFailuresAreLeftOut(t *testing.T) {
	space := optimizertest.Cube(t, 2, 0, 1)
	var with, without optimizer.Problem
	with = optimizer.Problem{Space: space, Direction: study.Minimize, MaxTrials: 100, Parallelism: 1, First: 1}
	without = with
	for i := range 30 {
		p := study.Point{"x1": float64(i%7) / 7, "x2": float64(i%5) / 5}
		o := optimizer.Observation{Trial: 0, Point: p, Outcome: optimizer.OutcomeCompleted, Values: study.Values{float64(i % 4)}}
		with.Observations = append(with.Observations, o, optimizer.Observation{Point: p, Outcome: optimizer.OutcomeFailed})
		without.Observations = append(without.Observations, o)
	}
	var states []*gaussian
	for _, p := range []optimizer.Problem{with, without} {
		r := &optimizer.Request{Problem: &p, Encoding: optimizer.NewEncoding(space), Rand: optimizer.NewRand(1, 1)}
		task := newTask(r, defaults(t))
		m := task.begin()
		task.learn(m)
		states = append(states, m.Gaussian)
	}
	if diff := cmp.Diff(states[0], states[1]); diff != "" {
		t.Errorf("(-with failures +without):\n%s", diff)
	}
}

func TestPopulations(t *testing.T) {
	// Usual: 4 + ⌊3 ln d⌋ is 4, 8, 10, 10, 17.
	for _, c := range []struct{ dim, parallelism, want int }{
		{1, 1, 4}, {5, 1, 8}, {9, 8, 8}, {10, 4, 12}, {100, 8, 16}, {5, 20, 20}, {5, 1000, 32},
	} {
		if got := populationOf(c.dim, c.parallelism); got != c.want {
			t.Errorf("%d columns, %d at once: a population of %d, want %d", c.dim, c.parallelism, got, c.want)
		}
	}
}

func TestRecommendsTheBestValue(t *testing.T) {
	s := optimizertest.NewSession(t, New(defaults(t)), optimizertest.Cube(t, 2, 0, 1), 4)
	s.Run(30, 4, ellipsoid(2))
	got, err := optimizer.Recommend(t.Context(), New(defaults(t)), &s.Problem, s.State)
	if err != nil || got == nil || got.Mean != s.Best() {
		t.Errorf("recommended %+v, %v; the best value is %g", got, err, s.Best())
	}
}

// The state has each number to the last bit.
func TestFloatsAreExact(t *testing.T) {
	for _, want := range []floats{nil,
		{math.Pi, math.Copysign(0, -1), math.SmallestNonzeroFloat64, math.MaxFloat64, math.Inf(-1), math.NaN()}} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := floats{1}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }) {
			t.Errorf("%v became %v", want, got)
		}
	}
	for _, text := range []string{`"AAAA"`, `"!"`, `[1]`} {
		if err := json.Unmarshal([]byte(text), &floats{}); err == nil {
			t.Errorf("%s is read as numbers", text)
		}
	}
}
