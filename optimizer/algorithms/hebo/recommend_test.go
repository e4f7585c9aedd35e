package hebo

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distmv"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// line returns a study of one float whose trials have the given values at the places.
func line(t *testing.T, places, values []float64) *optimizer.Problem {
	t.Helper()
	points := make([]study.Point, len(values))
	for i := range points {
		points[i] = study.Point{"x1": places[i]}
	}
	return completed(optimizertest.Cube(t, 1, 0, 1), points, values)
}

// completed returns a study whose trials have the values at the points.
func completed(space *space.Space, points []study.Point, values []float64) *optimizer.Problem {
	p := &optimizer.Problem{Space: space, Direction: study.Minimize, MaxTrials: 100, First: len(values) + 1}
	for i, v := range values {
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: points[i], Outcome: optimizer.OutcomeCompleted, Values: []float64{v},
		})
	}
	return p
}

// with returns the optimiser with a setting of noise.
func with(noise Noise) optimizer.Recommender { return proposer{Options{Noise: noise}, usual, nil} }

func TestRecommendNothing(t *testing.T) {
	p := line(t, nil, nil)
	p.Observations = []optimizer.Observation{{Trial: 1, Point: study.Point{"x1": 0.5}, Outcome: optimizer.OutcomeFailed}}
	if got, err := with(NoiseAuto).Recommend(t.Context(), p, nil); got != nil || err != nil {
		t.Errorf("nothing completed: %v, %v", got, err)
	}
}

func TestRecommendOne(t *testing.T) {
	got, err := with(NoiseAuto).Recommend(t.Context(), line(t, []float64{0.5}, []float64{7}), nil)
	if err != nil || got == nil || got.Trial != 1 || got.Mean != 7 || got.SD != 0 {
		t.Errorf("one observation of 7: %+v, %v", got, err)
	}
}

// With noise, the luckiest value is not recommended: many evaluations show that 0.3 is
// better than 0.8, where one was lucky.
func TestRecommendIsNotFooledByLuck(t *testing.T) {
	var places, values []float64
	rng := optimizer.NewRand(1, 1)
	for i := range 60 {
		x := 0.05 + 0.9*float64(i)/59
		places = append(places, x)
		values = append(values, 10*(x-0.3)*(x-0.3)+0.3*rng.NormFloat64())
	}
	places, values = append(places, 0.8), append(values, -1.5)
	for _, direction := range []study.Direction{study.Minimize, study.Maximize} {
		p := line(t, places, values)
		if p.Direction = direction; direction == study.Maximize {
			for i := range p.Observations {
				p.Observations[i].Values[0] *= -1
			}
		}
		got, err := with(NoiseAuto).Recommend(t.Context(), p, []byte("of another algorithm"))
		if err != nil {
			t.Fatal(err)
		}
		if x := got.Point["x1"].(float64); math.Abs(x-0.3) > 0.15 {
			t.Errorf("%s: recommended x = %.3f (%+v), want near 0.3", direction, x, got)
		}
		if got.Point["x1"] != p.Observations[got.Trial-1].Point["x1"] {
			t.Errorf("%s: the point is not that of trial %d", direction, got.Trial)
		}
		if math.Abs(got.Mean) > 0.3 || got.SD <= 0 || got.SD > 0.3 {
			t.Errorf("%s: mean %.3f ± %.3f where the objective is about 0", direction, got.Mean, got.SD)
		}
	}
}

// Without noise, the best value is not luck, however rough the objective.
func TestRecommendWithoutNoise(t *testing.T) {
	var places, values []float64
	for i := range 40 {
		x := float64(i) / 39
		places, values = append(places, x), append(values, (x-0.3)*(x-0.3))
	}
	values[30] = -0.01 // an isolated pit
	p := line(t, places, values)
	for noise, best := range map[Noise]bool{NoiseNo: true, NoiseAuto: false, NoiseYes: false} {
		got, err := with(noise).Recommend(t.Context(), p, nil)
		if err != nil || got == nil || (got.Trial == 31) != best {
			t.Errorf("noise: %s: recommended %+v, %v; trial 31 is the best: %t", noise, got, err, best)
		}
	}
	again := *p
	again.Observations = append(slices.Clone(p.Observations), p.Observations[30])
	if got, err := with(NoiseAuto).Recommend(t.Context(), &again, nil); err != nil || got == nil || got.Trial != 31 {
		t.Errorf("a point with the same value twice: recommended %+v, %v; want trial 31", got, err)
	}
}

func TestRecommendKeepsToCompletedTrials(t *testing.T) {
	p := line(t, []float64{0.1, 0.2, 0.3, 0.4}, []float64{4, 3, 2, 1})
	p.Observations[3].Outcome = optimizer.OutcomeInfeasible
	got, err := with(NoiseAuto).Recommend(t.Context(), p, nil)
	if err != nil || got == nil || got.Trial == 4 {
		t.Errorf("recommended %+v, %v; trial 4 was infeasible", got, err)
	}
}

// A trial outside of a limit is not recommended, however good its objective is.
func TestRecommendKeepsToLimits(t *testing.T) {
	var places, values []float64
	rng := optimizer.NewRand(1, 1)
	for i := range 40 {
		places = append(places, float64(i)/39)
		values = append(values, places[i]+0.1*rng.NormFloat64())
	}
	p := line(t, places, values)
	p.Limits = []study.Limit{{Metric: "c", Min: new(0.5)}}
	for i := range p.Observations {
		p.Observations[i].Excess = []float64{0.5 - places[i]}
	}
	got, err := with(NoiseAuto).Recommend(t.Context(), p, nil)
	if err != nil || got == nil || got.SD == 0 {
		t.Fatalf("%+v, %v, want a recommendation of the model", got, err)
	}
	if x := places[got.Trial-1]; x < 0.5 || x > 0.8 {
		t.Errorf("trial %d at %v is recommended, at least 0.5 is allowed", got.Trial, x)
	}
}

func TestRecommendFromManyObservations(t *testing.T) {
	s := observed(t, 3*surrogate.MaxPoints) // including an answered request of the optimiser
	got, err := with(NoiseAuto).Recommend(t.Context(), &s.Problem, s.State)
	if err != nil || got == nil {
		t.Fatalf("%v, %v", got, err)
	}
	// The values are a weighted square distance from 0.5 with noise of 0.01;
	// their mean over the study is about 0.4.
	var value float64
	for name, x := range got.Point {
		value += (x.(float64) - 0.5) * (x.(float64) - 0.5) * float64(name[1]-'0')
	}
	if value > 0.1 {
		t.Errorf("recommended a point of value %.3f", value)
	}
}

func TestRecommendEndsWithItsContext(t *testing.T) {
	s := observed(t, 30)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := with(NoiseAuto).Recommend(ctx, &s.Problem, s.State); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// If a finite space repeats no point, detail and noise look the same. Here outcomes are
// a smooth function, drawn from a Gaussian process over 10×10 points, plus an
// independent term for each point. If that term is detail, the recommended points are
// better on average than the best posterior means; if it is noise, they are better than
// the best values.
func TestRecommendUnknownNoise(t *testing.T) {
	const side, observed, objectives = 10, 40, 100
	level := func(name string) study.Parameter {
		return study.Parameter{Name: name, Type: study.Int, Min: number(0), Max: number(side - 1)}
	}
	space := optimizertest.Space(t, []study.Parameter{level("a"), level("b")}, nil)
	encoding := optimizer.NewEncoding(space)
	grid := make([]loop.Place, side*side)
	for i := range grid {
		point := study.Point{"a": int64(i % side), "b": int64(i / side)}
		grid[i] = loop.Place{Point: point, X: encoding.Encode(point)}
	}
	covariance := mat.NewSymDense(side*side, nil)
	kernel.NewMatern52(make([]kernel.Column, 2)).Prepare([]float64{math.Log(0.4), math.Log(0.4), 0}, loop.Rows(grid), false).Gram(covariance)
	for i := range side * side {
		covariance.SetSym(i, i, covariance.At(i, i)+1e-9)
	}
	rng := optimizer.NewRand(1, 1)
	smooth, ok := distmv.NewNormal(make([]float64, side*side), covariance, rng)
	if !ok {
		t.Fatal("the covariance matrix is not positive definite")
	}
	type losses struct{ recommended, best, mean float64 }
	var detail, noise losses
	for range objectives {
		f := smooth.Rand(nil)
		y := slices.Clone(f)
		for k := range y {
			y[k] += 0.3 * rng.NormFloat64()
		}
		at := rng.Perm(side * side)[:observed]
		points, values := make([]study.Point, observed), make([]float64, observed)
		for trial, k := range at {
			points[trial], values[trial] = grid[k].Point, y[k]
		}
		p := completed(space, points, values)
		for setting, loss := range map[Noise][2]*float64{
			NoiseAuto: {&detail.recommended, &noise.recommended},
			NoiseNo:   {&detail.best, &noise.best},
			NoiseYes:  {&detail.mean, &noise.mean},
		} {
			got, err := with(setting).Recommend(t.Context(), p, nil)
			if err != nil || got == nil {
				t.Fatalf("noise: %s: %v, %v", setting, got, err)
			}
			*loss[0] += y[at[got.Trial-1]] / objectives
			*loss[1] += f[at[got.Trial-1]] / objectives
		}
	}
	if !(detail.recommended < detail.mean) {
		t.Errorf("with detail, recommended points are worth %.4f, the best posterior means %.4f", detail.recommended, detail.mean)
	}
	if !(noise.recommended < noise.best) {
		t.Errorf("with noise, recommended points are worth %.4f, the best values %.4f", noise.recommended, noise.best)
	}
}
