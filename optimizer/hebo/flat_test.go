package hebo

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// The objective is flat around a place where three points beside it have one value,
// and at least as many as have others.
func TestFlatAround(t *testing.T) {
	parameters := []study.Parameter{
		{Name: "a", Type: study.Float, Min: number(0), Max: number(1)},
		{Name: "c", Type: study.Categorical, Values: []any{"x", "y"}},
	}
	space := optimizertest.Space(t, parameters, nil)
	type evaluation struct {
		a     float64
		c     string
		value float64
	}
	for name, c := range map[string]struct {
		evaluations []evaluation
		want        bool
	}{
		"three alike":           {[]evaluation{{0.5, "x", 1}, {0.51, "x", 1}, {0.54, "x", 1}}, true},
		"two":                   {[]evaluation{{0.5, "x", 1}, {0.51, "x", 1}, {0.9, "x", 1}}, false},
		"one point three times": {[]evaluation{{0.5, "x", 1}, {0.5, "x", 1}, {0.5, "x", 1}}, false},
		"nearly alike":          {[]evaluation{{0.5, "x", 1}, {0.51, "x", 1}, {0.54, "x", math.Nextafter(1, 2)}}, false},
		"another category":      {[]evaluation{{0.5, "x", 1}, {0.51, "x", 1}, {0.54, "y", 1}}, false},
		"three of six":          {[]evaluation{{0.5, "x", 1}, {0.51, "x", 1}, {0.54, "x", 1}, {0.52, "x", 2}, {0.53, "x", 3}, {0.49, "x", 4}}, true},
		"three of seven":        {[]evaluation{{0.5, "x", 1}, {0.51, "x", 1}, {0.54, "x", 1}, {0.52, "x", 2}, {0.53, "x", 3}, {0.49, "x", 4}, {0.48, "x", 5}}, false},
	} {
		r := &optimizer.Request{Encoding: optimizer.NewEncoding(space), Problem: &optimizer.Problem{}}
		for _, e := range c.evaluations {
			r.Observations = append(r.Observations, optimizer.Observation{
				Point: study.Point{"a": e.a, "c": e.c}, Outcome: optimizer.OutcomeCompleted, Values: []float64{e.value},
			})
		}
		f := (&search{r: r, options: DefaultOptions()}).newFlats()
		if got := f.around(r.Encoding.Encode(study.Point{"a": 0.51, "c": "x"})); got != c.want {
			t.Errorf("%s: flat is %v, want %v", name, got, c.want)
		}
	}
}

// Where the best points are alike, further ones are not put beside them.
func TestPlateausAreLeft(t *testing.T) {
	suggested := func(plateaus bool) (beside int) {
		o := DefaultOptions()
		o.Plateaus = plateaus
		s := optimizertest.NewSession(t, New(o), optimizertest.Cube(t, 2, 0, 1), 1)
		rng := optimizer.NewRand(1, 1)
		observe := func(a, b, value float64) {
			s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
				Trial: s.Problem.First, Point: study.Point{"x1": a, "x2": b}, Outcome: optimizer.OutcomeCompleted, Values: []float64{value},
			})
			s.Problem.First++
		}
		for range 24 {
			a, b := rng.Float64(), rng.Float64()
			observe(a, b, 1+math.Hypot(a-0.5, b-0.5))
		}
		for i := range 4 {
			observe(0.5+0.001*float64(i), 0.5, 1)
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
