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

// board is a study over size × size points, with so many trials.
func board(t *testing.T, noise Noise, size float64, trials int, seed uint64) (optimizer.Optimizer, *optimizertest.Session) {
	t.Helper()
	space := optimizertest.Space(t, []study.Parameter{
		{Name: "i", Type: study.Int, Min: number(0), Max: number(size - 1)}, {Name: "j", Type: study.Int, Min: number(0), Max: number(size - 1)},
	}, nil)
	o := New(options(func(o *Options) { o.Noise = noise }))
	s := optimizertest.NewSession(t, o, space, seed)
	s.Problem.MaxTrials = trials
	return o, s
}

// play evaluates points until there are so many trials or no other point is left, and returns how many there
// were, how many of them repeat a point, and what is recommended.
func play(t *testing.T, o optimizer.Optimizer, s *optimizertest.Session, evaluate func(i, j float64) (study.Values, []float64)) (
	made, repeats int, r *optimizer.Recommendation) {
	t.Helper()
	for made < s.Problem.MaxTrials {
		batch, err := s.TryAsk(t.Context(), 1)
		if errors.Is(err, optimizer.ErrExhausted) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if made++; batch[0].Repeat {
			repeats++
		}
		values, excess := evaluate(coordinate(batch[0].Point, "i"), coordinate(batch[0].Point, "j"))
		s.TellAll(made, values)
		s.Problem.Observations[made-1].Excess = excess
	}
	r, err := optimizer.Recommend(context.WithoutCancel(t.Context()), o, &s.Problem, s.State)
	if err != nil || r == nil {
		t.Fatal(r, err)
	}
	return made, repeats, r
}

// distances returns a tenth of the squared distances from two places of an 8 × 8 board. At no point are both small.
func distances(i, j float64) (a, b float64) {
	return ((i-1)*(i-1) + (j-1)*(j-1)) / 10, ((i-6)*(i-6) + (j-6)*(j-6)) / 10
}

// aim makes a study of a board one of two objectives, or of one with a limit on the other, and returns how it is
// evaluated, with so much noise.
func aim(s *optimizertest.Session, several bool, noise float64) func(i, j float64) (study.Values, []float64) {
	if several {
		s.Problem.Objectives = []study.Objective{{Metric: "a", Direction: study.Minimize}, {Metric: "b", Direction: study.Minimize}}
	} else {
		s.Problem.Limits = []study.Limit{{Metric: "b", Max: number(2)}}
	}
	rng := rand.New(rand.NewPCG(s.Problem.Seed, 9))
	return func(i, j float64) (study.Values, []float64) {
		a, b := distances(i, j)
		a, b = a+noise*rng.NormFloat64(), b+noise*rng.NormFloat64()
		if several {
			return study.Values{a, b}, nil
		}
		return study.Values{a}, []float64{b - 2}
	}
}

// Noisy studies of two objectives, and with a limit, over a finite space use the whole budget. Without noise,
// nothing is repeated.
func TestFiniteFrontsAndLimits(t *testing.T) {
	for _, c := range []struct {
		noise Noise
		sd    float64
		want  int
	}{{NoiseYes, 0.5, 44}, {NoiseAuto, 0.5, 44}, {NoiseAuto, 0, 36}} {
		for _, several := range []bool{true, false} {
			o, s := board(t, c.noise, 6, 44, 3)
			made, repeats, _ := play(t, o, s, aim(s, several, c.sd))
			if made != c.want || repeats < c.want-36 || c.sd == 0 && repeats > 0 {
				t.Errorf("%+v, several objectives %v: %d trials with %d repeats", c, several, made, repeats)
			}
		}
	}
}

// When every point of a finite space has been evaluated once and nobody has said whether values are noisy, a
// recommended front is not sure of lucky values, and a recommended trial is within a limit by more than luck.
func TestFiniteFrontsAndLimitsAreUnsure(t *testing.T) {
	const seeds, size = 12, 8
	outside, square, values := 0, 0.0, 0.0
	for seed := range uint64(seeds) {
		for _, several := range []bool{true, false} {
			o, s := board(t, NoiseAuto, size, size*size, seed)
			evaluate := aim(s, several, 0.5)
			for n := range size * size {
				values, excess := evaluate(float64(n/size), float64(n%size))
				s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
					Trial: n + 1, Point: study.Point{"i": int64(n / size), "j": int64(n % size)}, Outcome: optimizer.OutcomeCompleted,
					Values: values, Excess: excess,
				})
			}
			r, err := optimizer.Recommend(t.Context(), o, &s.Problem, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, b := distances(coordinate(r.Point, "i"), coordinate(r.Point, "j")); !several && b > 2 {
				outside++
			}
			for _, x := range r.Front {
				p := s.Problem.Observations[x.Trial-1].Point
				a, b := distances(coordinate(p, "i"), coordinate(p, "j"))
				za, zb := (x.Means[0]-a)/x.SDs[0], (x.Means[1]-b)/x.SDs[1]
				square += za*za + zb*zb
				values += 2
			}
		}
	}
	if off := math.Sqrt(square / values); off > 2 {
		t.Errorf("fronts are off by %.2f of their standard deviations, want about 1", off)
	}
	if outside > seeds/4 {
		t.Errorf("%d of %d recommended trials are outside of the limit, of which each looked within", outside, seeds)
	}
}

// In a finite space that is too large to be enumerated, a recommendation after a few trials is not sure of the
// luckiest. When all points have been evaluated and the values are noisy, some are evaluated again.
func TestNoisyLargeFiniteSpaces(t *testing.T) {
	const size = 101
	o, s := board(t, NoiseAuto, size, 40, 7)
	rng := rand.New(rand.NewPCG(7, 9))
	truth := func(i, j float64) float64 { return ((i-40)*(i-40) + (j-70)*(j-70)) / 1000 }
	_, _, r := play(t, o, s, func(i, j float64) (study.Values, []float64) {
		return study.Values{truth(i, j) + rng.NormFloat64()/2}, nil
	})
	if is := truth(coordinate(r.Point, "i"), coordinate(r.Point, "j")); math.Abs(r.Mean-is) > 3*r.SD {
		t.Errorf("recommends %.3f ± %.4f, in truth %.3f", r.Mean, r.SD, is)
	}
	for _, noisy := range []float64{0.5, 0} {
		s.Problem.Observations, s.Problem.Pending, s.State = nil, nil, nil
		for n := range size * size {
			i, j := n/size, n%size
			s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
				Trial: n + 1, Point: study.Point{"i": int64(i), "j": int64(j)}, Outcome: optimizer.OutcomeCompleted,
				Values: study.Values{truth(float64(i), float64(j)) + noisy*rng.NormFloat64()},
			})
		}
		s.Problem.First, s.Problem.MaxTrials = size*size+1, size*size+50
		batch, _, err := o.Suggest(t.Context(), &s.Problem, nil, 1, optimizer.NewRand(1, 1))
		switch again := noisy > 0; {
		case again && (err != nil || len(batch) != 1 || !batch[0].Repeat):
			t.Errorf("all points are known, with noise: suggests %+v, %v; want one of them again", batch, err)
		case !again && !errors.Is(err, optimizer.ErrExhausted):
			t.Errorf("all points are known, without noise: suggests %+v, %v; want ErrExhausted", batch, err)
		}
	}
}
