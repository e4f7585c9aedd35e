package hebo

import (
	"context"
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// corner has its minimum at bounds of its continuous parameters, where every climb
// along a gradient ends at the same point.
func corner(p study.Point) float64 {
	value := p["x1"].(float64)
	if y, ok := p["x2"].(float64); ok {
		return value + y
	}
	return value + 0.1*math.Abs(float64(p["n"].(int64))-5) + map[string]float64{"a": 0, "b": 0.2}[p["kind"].(string)]
}

// corners are spaces of corner.
func corners(t *testing.T) map[string]*space.Space {
	return map[string]*space.Space{
		"continuous": optimizertest.Cube(t, 2, 0, 1),
		"mixed": optimizertest.Space(t, []study.Parameter{
			{Name: "x1", Type: study.Float, Min: number(0), Max: number(1)},
			{Name: "n", Type: study.Int, Min: number(1), Max: number(8)},
			{Name: "kind", Type: study.Categorical, Values: []any{"a", "b"}},
		}, nil),
	}
}

// A point is evaluated again only on purpose; the note says so and it counts as a
// repeat. This also holds if the optimum is at a bound.
func TestRepeatsAreSaid(t *testing.T) {
	for name, space := range corners(t) {
		for _, noise := range []float64{0, 0.05} {
			s := optimizertest.NewSession(t, New(DefaultOptions()), space, 3)
			rng := optimizer.NewRand(3, 3)
			seen := map[string]bool{}
			const trials = 40
			marked := 0
			for trial := 1; trial <= trials; trial++ {
				b := s.Ask(1)[0]
				key := space.Key(b.Point)
				if seen[key] != b.Repeat {
					t.Errorf("%s, noise %g: trial %d: evaluated before: %t, said to be repeated: %t", name, noise, trial, seen[key], b.Repeat)
				}
				if b.Repeat {
					marked++
				}
				seen[key] = true
				s.Tell(trial, corner(b.Point)+noise*rng.NormFloat64())
			}
			if low, high := 1, trials*3/10+1; marked < low || marked > high {
				t.Errorf("%s, noise %g: %d repeats of %d, want %d to %d", name, noise, marked, trials, low, high)
			}
		}
	}
}

// However points are chosen, the optimiser checks for noise and re-evaluates good
// points if there is some.
func TestAllAcquisitionsRepeat(t *testing.T) {
	for name, acquisition := range map[string]Acquisition{"logei": EI, "mace": MACE} {
		o := newSmall(options(func(o *Options) { o.Acquisition = acquisition }), effort{1000, 20, 10})
		s := optimizertest.NewSession(t, o, optimizertest.Cube(t, 2, 0, 1), 4)
		rng := optimizer.NewRand(4, 4)
		var of []int
		const trials = 30
		for trial := 1; trial <= trials; trial++ {
			b := s.Ask(1)[0]
			if b.Repeat {
				of = append(of, trial)
			}
			s.Tell(trial, bowl(b.Point)+0.3*rng.NormFloat64())
		}
		if len(of) < 2 || of[0] != 9 || len(of) > trials*3/10+1 {
			t.Errorf("%s: trials %v are repeats, want the ninth, and up to three in ten", name, of)
		}
	}
}

// The acquisition value among a repeat's reasons is the acquisition function's: a point
// that is at best as good as the incumbent promises at most sd·φ(0), and the outcomes
// are standardised.
func TestReasonsOfAProbe(t *testing.T) {
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 2, 0, 1), 4)
	for trial := 1; trial <= 9; trial++ {
		b := s.Ask(1)[0]
		if value := b.Reasons.Acquisition[string(EI)]; b.Repeat && value > math.Log(1/math.Sqrt(2*math.Pi)) {
			t.Errorf("the probe has a log EI of %g", value)
		}
		if trial == 9 && !b.Repeat {
			t.Error("the ninth trial is no probe")
		}
		s.Tell(trial, bowl(b.Point))
	}
}

// If evaluations are known to be noisy, a finite space is never exhausted, however
// small it is, however many points are requested, and even before the first has
// completed.
func TestSmallNoisySpacesGoOn(t *testing.T) {
	noisy := options(func(o *Options) { o.Noise = NoiseYes })
	few := optimizertest.Space(t, []study.Parameter{{Name: "n", Type: study.Int, Min: number(0), Max: number(2)}}, nil)
	s := optimizertest.NewSession(t, New(noisy), few, 1)
	for trial := 1; trial <= 12; trial++ {
		b := s.Ask(1)
		if len(b) != 1 || b[0].Repeat != (trial > 3) {
			t.Fatalf("trial %d of three points: %v", trial, b)
		}
		s.Tell(trial, float64(b[0].Point["n"].(int64)))
	}

	many := optimizertest.NewSession(t, New(noisy), optimizertest.Small(t), 1)
	for range 3 { // nothing has completed
		b, err := many.TryAsk(context.Background(), optimizertest.SmallSize+5)
		if err != nil || len(b) != optimizertest.SmallSize+5 {
			t.Fatalf("%d suggestions of %d points, want %d: %v", len(b), optimizertest.SmallSize, optimizertest.SmallSize+5, err)
		}
	}
	many.Tell(1, 1)
	if b, err := many.TryAsk(context.Background(), 2); err != nil || len(b) != 2 {
		t.Errorf("one has completed: %v, %v", b, err)
	}
}

// Ten times as many evaluations as the model takes still get their suggestions.
func TestTenThousandEvaluations(t *testing.T) {
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 3, 0, 1), 1)
	rng := optimizer.NewRand(1, 1)
	for i := range 10_000 {
		p := study.Point{"x1": rng.Float64(), "x2": rng.Float64(), "x3": rng.Float64()}
		s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
			Trial: i + 1, Point: p, Outcome: optimizer.OutcomeCompleted, Values: []float64{bowl(p)},
		})
	}
	s.Problem.First = 10_001
	for _, b := range s.Ask(2) {
		if b.Source != optimizer.SourceModel || b.Reasons.Mean == nil || *b.Reasons.Mean > s.Best()+0.01 {
			t.Errorf("suggested %v by %s, expecting %v; the best so far is %v", b.Point, b.Source, b.Reasons.Mean, s.Best())
		}
	}
}

// The share of repeats is taken of all evaluations, including those beyond the model's
// limit.
func TestShareOfRepeatsBeyondTheModel(t *testing.T) {
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 2, 0, 1), 1)
	rng := optimizer.NewRand(1, 1)
	n := 4 * surrogate.MaxPoints
	for i := range n {
		p := study.Point{"x1": rng.Float64(), "x2": rng.Float64()}
		if i%2 == 1 { // half of them
			p = s.Problem.Observations[i-1].Point
		}
		s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
			Trial: i + 1, Point: p, Outcome: optimizer.OutcomeCompleted, Values: []float64{bowl(p) + rng.NormFloat64()},
		})
	}
	s.Problem.First = n + 1
	for _, b := range s.Ask(3) {
		if b.Repeat {
			t.Errorf("%v is evaluated again, though half of all evaluations repeat one", b.Point)
		}
	}
}
