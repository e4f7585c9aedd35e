package hebo

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// half plays a function with a limit of which every second trial is stopped early, and returns how
// many trials are outside of the limit. early tells the optimiser the limit of those that were
// stopped.
func half(t *testing.T, f testfunc.Limited, seed uint64, early bool) (outside int) {
	const trials, parallel = 32, 4
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 2, 0, 6), seed)
	s.Problem.MaxTrials, s.Problem.Parallelism, s.Problem.Limits = trials, parallel, []study.Limit{{Metric: "c", Max: new(0.0), Early: early}}
	for len(s.Problem.Observations) < trials {
		if free := min(parallel-len(s.Problem.Pending), trials-s.Problem.First+1); free > 0 {
			s.Ask(free)
		}
		p := s.Problem.Pending[0]
		value, excess := f.Value([]float64{p.Point["x1"].(float64), p.Point["x2"].(float64)})
		if excess[0] > 0 {
			outside++
		}
		if p.Trial%2 == 0 {
			s.End(p.Trial, optimizer.OutcomePruned, value)
		} else {
			s.Tell(p.Trial, value)
		}
		if early || p.Trial%2 != 0 {
			s.Problem.Observations[len(s.Problem.Observations)-1].Excess = excess
		}
	}
	return outside
}

// If half of the trials are stopped early, the model of a limit that is known early learns from them,
// and fewer trials are outside of it.
func TestLimitKnownEarly(t *testing.T) {
	functions := testfunc.LimitedFunctions()
	f := functions[slices.IndexFunc(functions, func(f testfunc.Limited) bool { return f.Name == "gardner-2" })]
	with, without := 0, 0
	for seed := range uint64(5) {
		a, b := half(t, f, seed+1, true), half(t, f, seed+1, false)
		with, without = with+a, without+b
		t.Logf("seed %d: %d trials are outside, %d if the limit's model learns from completed ones alone", seed+1, a, b)
	}
	if with > without*9/10 {
		t.Errorf("%d trials are outside of the limit, %d if its model learns from completed ones alone", with, without)
	}
}

// What is recommended does not depend on evaluations that were stopped early, wherever they are
// among the others.
func TestRecommendedFrontBesidePruned(t *testing.T) {
	p := slope(t)
	p.Limits = []study.Limit{{Metric: "c", Max: new(0.0), Early: true}}
	want, err := with(NoiseAuto).Recommend(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	pruned := optimizer.Observation{
		Point: study.Point{"x1": 0.1, "x2": 0.9}, Outcome: optimizer.OutcomePruned, Values: study.Values{9, 9}, Excess: []float64{-0.5},
	}
	p.Observations = slices.Insert(p.Observations, 0, pruned, pruned)
	p.Observations = slices.Insert(p.Observations, 30, pruned)
	got, err := with(NoiseAuto).Recommend(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("beside three pruned evaluations (-without +with):\n%s", diff)
	}
}
