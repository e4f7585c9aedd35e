package hebo

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// Without noise, the objective counts as flat where the nearest comparable point has
// the same value as another one. With noise, it does where three points beside the
// place share a value and make up at least half of those beside it.
func TestFlatAround(t *testing.T) {
	parameters := []study.Parameter{
		{Name: "a", Type: study.Float, Min: number(0), Max: number(1)},
		{Name: "c", Type: study.Categorical, Values: []any{"x", "y"}},
		{Name: "n", Type: study.Int, Min: number(1), Max: number(4)},
		{Name: "m", Type: study.Int, Min: number(1), Max: number(40)},
	}
	searched := optimizertest.Space(t, parameters, nil)
	type evaluation struct {
		a     float64
		c     string
		value float64
	}
	for name, c := range map[string]struct {
		evaluations  []evaluation
		exact, noisy bool
	}{
		"three alike":           {[]evaluation{{0.5, "x", 1}, {0.51, "x", 1}, {0.54, "x", 1}}, true, true},
		"two":                   {[]evaluation{{0.5, "x", 1}, {0.51, "x", 1}, {0.9, "x", 2}}, true, false},
		"two far away":          {[]evaluation{{0.1, "x", 1}, {1, "x", 1}}, true, false},
		"two, another nearer":   {[]evaluation{{0.1, "x", 1}, {1, "x", 1}, {0.2, "x", 2}}, false, false},
		"one point three times": {[]evaluation{{0.5, "x", 1}, {0.5, "x", 1}, {0.5, "x", 1}}, false, false},
		"nearly alike":          {[]evaluation{{0.5, "x", 1}, {0.51, "x", 1 + 1e-15}, {0.54, "x", 2}, {0.9, "x", 2}}, false, false},
		"another category":      {[]evaluation{{0.5, "x", 1}, {0.51, "y", 1}, {0.54, "y", 1}}, false, false},
		"three of six": {[]evaluation{{0.51, "x", 1}, {0.5, "x", 1}, {0.54, "x", 1}, {0.52, "x", 2}, {0.53, "x", 3}, {0.49, "x", 4}},
			true, true},
		"three of seven": {[]evaluation{{0.51, "x", 1}, {0.5, "x", 1}, {0.54, "x", 1}, {0.52, "x", 2}, {0.53, "x", 3}, {0.49, "x", 4},
			{0.48, "x", 5}}, true, false},
	} {
		r := &optimizer.Request{Encoding: optimizer.NewEncoding(searched), Problem: &optimizer.Problem{}}
		point := func(a float64, c string) study.Point {
			return study.Point{"a": a, "c": c, "n": int64(1), "m": int64(1)}
		}
		for _, e := range c.evaluations {
			r.Observations = append(r.Observations, optimizer.Observation{
				Point: point(e.a, e.c), Outcome: optimizer.OutcomeCompleted, Values: []float64{e.value},
			})
		}
		at := r.Encoding.Encode(point(0.51, "x"))
		for noise, want := range map[surrogate.Noise]bool{surrogate.NoiseUnknown: c.exact, surrogate.NoiseFree: c.exact,
			surrogate.Noisy: c.noisy} {
			f := (&search{Loop: &loop.Loop{Input: loop.Input{Request: r}}, options: DefaultOptions()}).newFlats(noise)
			if got := f.around(at); got != want {
				t.Errorf("%s, noise %v: flat is %v, want %v", name, noise, got, want)
			}
		}
		f := (&search{Loop: &loop.Loop{Input: loop.Input{Request: r}}, options: DefaultOptions()}).newFlats(surrogate.NoiseFree)
		for what, other := range map[string]study.Point{
			"few values":  {"a": 0.51, "c": "x", "n": int64(2), "m": int64(1)},
			"many values": {"a": 0.51, "c": "x", "n": int64(1), "m": int64(2)},
		} {
			if got, want := f.around(r.Encoding.Encode(other)), c.exact && what == "many values"; got != want {
				t.Errorf("%s, another value of an integer of %s: flat is %v, want %v", name, what, got, want)
			}
		}
	}
}

// At most 20 of 100 trials, and 200 of 10,000, are taken from an even spread.
func TestMayEscape(t *testing.T) {
	for _, c := range []struct {
		trial, escapes int
		want           bool
	}{
		{18, 0, true}, {100, 19, true}, {100, 20, false}, {10_000, 199, true}, {10_000, 200, false},
	} {
		if got := mayEscape(c.trial, c.escapes); got != c.want {
			t.Errorf("trial %d after %d escapes: %v, want %v", c.trial, c.escapes, got, c.want)
		}
	}
}

// told tells a session the outcomes of points that it did not ask for.
func told(s *optimizertest.Session, point study.Point, value float64) {
	s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
		Trial: s.Problem.First, Point: point, Outcome: optimizer.OutcomeCompleted, Values: []float64{value},
	})
	s.Problem.First++
}

// If the best points have the same value, further points are not put beside them.
func TestPlateausAreLeft(t *testing.T) {
	suggested := func(plateaus bool) (beside int) {
		o := DefaultOptions()
		o.Plateaus = plateaus
		s := optimizertest.NewSession(t, New(o), optimizertest.Cube(t, 2, 0, 1), 1)
		rng := optimizer.NewRand(1, 1)
		for range 24 {
			a, b := rng.Float64(), rng.Float64()
			told(s, study.Point{"x1": a, "x2": b}, 1+math.Hypot(a-0.5, b-0.5))
		}
		for i := range 4 {
			told(s, study.Point{"x1": 0.5 + 0.001*float64(i), "x2": 0.5}, 1)
		}
		for _, b := range s.Ask(8) {
			if !b.Repeat && math.Abs(b.Point["x1"].(float64)-0.5) < 0.047 && math.Abs(b.Point["x2"].(float64)-0.5) < 0.047 {
				beside++
			}
		}
		return beside
	}
	if with, without := suggested(true), suggested(false); with > 0 || without < 4 {
		t.Errorf("of 8 points %d are put where 4 were alike, %d without keeping away; want none, at least 4", with, without)
	}
}

// After the twelve best points have the same value and the same category, the next
// points are not all of that category.
func TestTiesOfOneCategory(t *testing.T) {
	for seed := range uint64(5) {
		s := optimizertest.NewSession(t, New(DefaultOptions()), machine(t), seed)
		rng := optimizer.NewRand(seed, 1)
		for i := range 12 {
			told(s, study.Point{"C": rng.Float64(), "gamma": rng.Float64(), "kernel": "poly", "degree": int64(3)}, 0.04)
			if i%4 == 0 {
				told(s, study.Point{"C": rng.Float64(), "gamma": 0.5 * rng.Float64(), "kernel": "rbf"}, 0.8)
			}
		}
		others := 0
		for _, b := range s.Ask(4) {
			if b.Point["kernel"] != "poly" || b.Point["degree"] != int64(3) {
				others++
			}
		}
		if others < 2 {
			t.Errorf("seed %d: of 4 points %d are outside the plateau, want at least 2", seed, others)
		}
	}
}

// machine returns a space like that of a support vector machine with the kernels rbf
// and poly: gamma and C on a logarithmic scale, moved to the unit interval.
func machine(t *testing.T) *space.Space {
	return optimizertest.Space(t, []study.Parameter{
		{Name: "C", Type: study.Float, Min: number(0), Max: number(1)},
		{Name: "gamma", Type: study.Float, Min: number(0), Max: number(1)},
		{Name: "kernel", Type: study.Categorical, Values: []any{"rbf", "poly"}},
		{Name: "degree", Type: study.Int, Min: number(2), Max: number(5), When: map[string][]any{"kernel": {"poly"}}},
	}, nil)
}

// errorOf is an error rate on 1,797 samples that behaves like such a machine's on
// scikit-learn's handwritten digits. Under poly it depends on C·gamma^degree alone, and
// once that is large on the degree alone. Under rbf it is high for small C·gamma or
// large gamma, and a little better than under poly in a valley between.
func errorOf(p study.Point) float64 {
	c, gamma := 5*p["C"].(float64)-2, 5*p["gamma"].(float64)-6 // powers of ten
	step := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
	var rate float64
	if degree, poly := p["degree"].(int64); poly {
		plateau := []float64{0.0456, 0.0395, 0.0401, 0.0484}[degree-2]
		rate = plateau + 0.8*step(-4*(c+float64(degree)*gamma+1+3.8*float64(degree)))
	} else {
		below := max(0, -3-gamma)
		rate = 0.024 + 0.028*(1-math.Exp(-below*below)) + 0.8*step(-5*(c+gamma+5)) + 0.85*step(6*(gamma+1.9))
	}
	return math.Round(rate*1797) / 1797
}

// The search finds the better region although most of the space under the other kernel
// is flat and nearly as good.
func TestPlateausOfASupportVectorMachine(t *testing.T) {
	stuck := 0
	const seeds = 8
	for seed := range uint64(seeds) {
		s := optimizertest.NewSession(t, New(DefaultOptions()), machine(t), seed)
		s.Run(30, 4, errorOf)
		if s.Best() > 0.03 {
			stuck++
		}
	}
	if stuck > 1 {
		t.Errorf("%d of %d runs end on the plateau, want at most 1", stuck, seeds)
	}
}
