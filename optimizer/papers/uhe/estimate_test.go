package uhe

import (
	"context"
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// waves returns 60 evaluations of a smooth function without noise, multiplied by scale.
func waves(t *testing.T, direction study.Direction, scale float64) *optimizer.Problem {
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 2, 0, 1), Direction: direction, Seed: 1}
	rng := optimizer.NewRand(1, 1)
	for i := range 60 {
		x1, x2 := rng.Float64(), rng.Float64()
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: study.Point{"x1": x1, "x2": x2}, Outcome: optimizer.OutcomeCompleted,
			Values: study.Values{scale * wave(x1, x2)},
		})
	}
	return p
}

func wave(x1, x2 float64) float64 { return math.Sin(9*x1) + 0.5*math.Cos(2*x2) + 3 }

// An estimate is in units of the objective: it predicts a smooth function that it has seen
// at 60 points, and ten times the function, maximised, has the same lengthscales and ten
// times the standard deviations. The function bends more often along x1.
func TestEstimateIsInUnitsOfTheObjective(t *testing.T) {
	where := []study.Point{{"x1": 0.31, "x2": 0.72}, {"x1": 0.66, "x2": 0.35}}
	for _, method := range []Method{MAP, MCMC, Adaptive} {
		o := options(t, func(o *Options) { o.Method = method })
		one, err := NewEstimate(t.Context(), o, waves(t, study.Minimize, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		ten, err := NewEstimate(t.Context(), o, waves(t, study.Maximize, 10), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range one.Predict(where) {
			want := wave(where[i]["x1"].(float64), where[i]["x2"].(float64))
			if v10 := ten.Predict(where)[i]; math.Abs(v-want) > 0.05 || math.Abs(v10-10*want) > 0.5 {
				t.Errorf("%s: predicts %v, and %v for ten times the function, which is %v", method, v, v10, want)
			}
		}
		if !(one.Lengthscales[0] < one.Lengthscales[1]) || one.Noise > 0.05 {
			t.Errorf("%s: lengthscales %v, noise %v", method, one.Lengthscales, one.Noise)
		}
		tolerance := 0.15 // of a search that ends early
		if method == MCMC {
			tolerance = 0.6 // of a chain
		}
		for i, pair := range [][2]float64{{one.Lengthscales[0], ten.Lengthscales[0]}, {one.Lengthscales[1], ten.Lengthscales[1]},
			{10 * one.SD, ten.SD}} {
			if math.Abs(math.Log(pair[0]/pair[1])) > tolerance {
				t.Errorf("%s: hyperparameter %d is %v, and %v for ten times the function", method, i, pair[0], pair[1])
			}
		}
	}
}

// The lengthscales of Adaptive are those of MAP, divided by the factor of its state.
func TestEstimateOfAdaptive(t *testing.T) {
	p := waves(t, study.Minimize, 1)
	state := optimizer.State(`{"version":1,"method":"adaptive","growth":{"points":9,"factor":4}}`)
	got, err := NewEstimate(t.Context(), options(t, func(o *Options) { o.Method = Adaptive }), p, state)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := NewEstimate(t.Context(), options(t, func(o *Options) { o.Method = MAP }), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range whole.Lengthscales {
		if math.Abs(got.Lengthscales[i]-v/4) > 1e-9*v {
			t.Errorf("lengthscale %d is %v, want a quarter of %v", i, got.Lengthscales[i], v)
		}
	}
}

func TestNoEstimate(t *testing.T) {
	o := options(t, func(*Options) {})
	few := waves(t, study.Minimize, 1)
	few.Observations = few.Observations[:1]
	if _, err := NewEstimate(t.Context(), o, few, nil); err == nil {
		t.Error("one evaluation is enough")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewEstimate(ctx, o, waves(t, study.Minimize, 1), nil); err == nil {
		t.Error("an estimate was cut short, and is none")
	}
}
