package hebo

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// searching is a study of the bowl with some evaluations and two pending points.
func searching(t *testing.T, n int) *optimizer.Problem {
	t.Helper()
	p := &optimizer.Problem{
		Space: optimizertest.Cube(t, 2, 0, 1), Direction: study.Minimize, MaxTrials: 100, Parallelism: 3, Seed: 5, First: n + 3,
	}
	rng := optimizer.NewRand(1, 2)
	for i := range n {
		point := study.Point{"x1": rng.Float64(), "x2": rng.Float64()}
		o := optimizer.Observation{Trial: i + 1, Point: point, Outcome: optimizer.OutcomeCompleted, Values: []float64{bowl(point)}}
		if i%6 == 5 {
			o.Outcome, o.Values = optimizer.OutcomeFailed, nil
		}
		p.Observations = append(p.Observations, o)
	}
	for i := range 2 {
		p.Pending = append(p.Pending, optimizer.Pending{Trial: n + 1 + i, Point: study.Point{"x1": 0.55 + 0.1*float64(i), "x2": 0.6}})
	}
	return p
}

// The landscape is that of the suggestion for the same problem: it has the same values at
// the point that was picked, and lower ones beside it.
func TestLandscapeIsThatOfTheSuggestion(t *testing.T) {
	for name, o := range map[string]Options{
		"defaults":         DefaultOptions(),
		"failures ignored": options(func(o *Options) { o.Surrogate.Failures = "ignore" }),
	} {
		t.Run(name, func(t *testing.T) {
			o.Replicate = false // a point to evaluate again is not the best by the function
			p := searching(t, 20)
			suggested, _, err := New(o).Suggest(t.Context(), p, nil, 1, optimizer.NewRand(p.Seed, p.First))
			if err != nil {
				t.Fatal(err)
			}
			s := suggested[0]
			l, err := NewLandscape(t.Context(), o, p, 0)
			if err != nil {
				t.Fatal(err)
			}
			recorded, ok := s.Reasons.Acquisition[l.Acquisition()]
			if !ok {
				t.Fatalf("the function is %s; the suggestion has %v", l.Acquisition(), s.Reasons.Acquisition)
			}
			beside := []study.Point{s.Point}
			for _, step := range []float64{-0.2, -0.05, 0.05, 0.2} {
				for _, name := range []string{"x1", "x2"} {
					near := study.Point{"x1": s.Point["x1"], "x2": s.Point["x2"]}
					near[name] = min(1, max(0, near[name].(float64)+step))
					beside = append(beside, near)
				}
			}
			worth, mean, variance := l.At(beside)
			expected, sd := l.Data().Moments(mean[0], variance[0])
			if math.Abs(expected-*s.Reasons.Mean) > 1e-9 || math.Abs(sd-*s.Reasons.SD) > 1e-9 {
				t.Errorf("the model expects %g ± %g, the suggestion has %g ± %g", expected, sd, *s.Reasons.Mean, *s.Reasons.SD)
			}
			if math.Abs(worth[0]-recorded) > 1e-9 {
				t.Errorf("the point is worth %g, the suggestion has %g", worth[0], recorded)
			}
			for i, w := range worth[1:] {
				if w > worth[0]+1e-6 {
					t.Errorf("%v is worth %g, the picked point %v %g", beside[i+1], w, s.Point, worth[0])
				}
			}
		})
	}
}

// What is pending makes the model surer there, and the place less worth evaluating.
func TestLandscapeKnowsPendingPoints(t *testing.T) {
	p := searching(t, 20)
	free := *p
	free.Pending = nil
	at := []study.Point{p.Pending[0].Point}
	with, err := NewLandscape(t.Context(), DefaultOptions(), p, 0)
	if err != nil {
		t.Fatal(err)
	}
	without, err := NewLandscape(t.Context(), DefaultOptions(), &free, 0)
	if err != nil {
		t.Fatal(err)
	}
	worth, _, variance := with.At(at)
	before, _, wide := without.At(at)
	if worth[0] >= before[0] || variance[0] >= wide[0] {
		t.Errorf("pending: worth %g, variance %g; before: %g, %g", worth[0], variance[0], before[0], wide[0])
	}
}

func TestLandscapeNeedsObservations(t *testing.T) {
	if _, err := NewLandscape(t.Context(), DefaultOptions(), searching(t, 1), 0); !errors.Is(err, ErrNoModel) {
		t.Errorf("of one observation: %v, want ErrNoModel", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewLandscape(ctx, DefaultOptions(), searching(t, 20), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}
