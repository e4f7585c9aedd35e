package hebo

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// slope returns noisy trials of x1 + 2·x2 and 1 − x1 + 2·x2, whose front is x2 = 0, with a limit
// on x1 that is as noisy. Each point is evaluated twice, which tells noise from detail.
func slope(t *testing.T) *optimizer.Problem {
	rng := rand.New(rand.NewPCG(5, 6))
	p := &optimizer.Problem{
		Space: optimizertest.Cube(t, 2, 0, 1), MaxTrials: 100, First: 61,
		Objectives: []study.Objective{{Metric: "a", Direction: study.Minimize}, {Metric: "b", Direction: study.Minimize}},
	}
	noise := func() float64 { return 0.4 * rng.NormFloat64() }
	var x, y float64
	for i := range 60 {
		if i%2 == 0 {
			x, y = rng.Float64(), rng.Float64()
		}
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: study.Point{"x1": x, "x2": y}, Outcome: optimizer.OutcomeCompleted,
			Values: study.Values{x + 2*y + noise(), 1 - x + 2*y + noise()}, Excess: []float64{x - 0.6 + noise()},
		})
	}
	return p
}

// far returns the largest of a parameter on a recommended front.
func far(p *optimizer.Problem, r *optimizer.Recommendation, parameter string) float64 {
	largest := 0.0
	for _, e := range r.Front {
		largest = max(largest, p.Observations[e.Trial-1].Point[parameter].(float64))
	}
	return largest
}

// The front of the values has lucky trials far from the true front. That of the posterior means
// has none, and its means are nearer to the truth than the noise.
func TestRecommendedFrontIsNotFooledByLuck(t *testing.T) {
	p := slope(t)
	seen := p.Best()
	got, err := with(NoiseAuto).Recommend(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lucky, model := far(p, seen, "x2"), far(p, got, "x2"); !(lucky > 0.2 && model < lucky/2) {
		t.Errorf("the worst trial has x2 = %v by its values, %v by the model", lucky, model)
	}
	for _, e := range got.Front {
		x := p.Observations[e.Trial-1].Point
		want := x["x1"].(float64) + 2*x["x2"].(float64)
		if off := math.Abs(e.Means[0] - want); off > 0.3 || e.SDs[0] <= 0 || e.SDs[0] > 0.4 {
			t.Errorf("trial %d: %v ± %v, in truth %v", e.Trial, e.Means[0], e.SDs[0], want)
		}
	}
	without, err := with(NoiseNo).Recommend(t.Context(), p, nil)
	if err != nil || far(p, without, "x2") != far(p, seen, "x2") {
		t.Errorf("without noise the front is not that of the values: %+v, %v", without, err)
	}
}

// Trials that were within a limit by luck are not recommended.
func TestRecommendedFrontIsLikelyWithinLimits(t *testing.T) {
	p := slope(t)
	p.Limits = []study.Limit{{Metric: "c", Max: new(0.0)}}
	got, err := with(NoiseAuto).Recommend(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if by := far(p, got, "x1"); by > 0.75 {
		t.Errorf("a trial with x1 = %v is recommended, at most 0.6 is allowed", by)
	}
	for _, e := range got.Front {
		if !p.Observations[e.Trial-1].Within() {
			t.Errorf("trial %d was outside of the limit", e.Trial)
		}
	}
}

func TestRecommendedFrontEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := with(NoiseAuto).Recommend(ctx, slope(t), nil); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", got, err)
	}
}
