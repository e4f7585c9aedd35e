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

// distances are the squared distances from two corners of an 8 × 8 board, over 10, of which no point has both small.
func distances(i, j float64) (a, b float64) {
	return (math.Pow(i-1, 2) + math.Pow(j-1, 2)) / 10, (math.Pow(i-6, 2) + math.Pow(j-6, 2)) / 10
}

// Two noisy objectives over a finite space use the whole budget. What is expected of the recommended
// trials is what they are, by the standard deviations that are said.
func TestNoisyFiniteFronts(t *testing.T) {
	for _, noise := range []Noise{NoiseYes, NoiseAuto} {
		for _, trials := range []int{64, 80} {
			o, s := board(t, noise, 8, trials, 3)
			s.Problem.Objectives = []study.Objective{{Metric: "a", Direction: study.Minimize}, {Metric: "b", Direction: study.Minimize}}
			rng := rand.New(rand.NewPCG(3, 9))
			made, repeats, r := play(t, o, s, func(i, j float64) (study.Values, []float64) {
				a, b := distances(i, j)
				return study.Values{a + rng.NormFloat64()/2, b + rng.NormFloat64()/2}, nil
			})
			if made != trials || repeats < trials-64 {
				t.Errorf("%s: %d trials with %d repeats, want %d", noise, made, repeats, trials)
			}
			off, n := 0.0, 0.0
			for _, x := range r.Front {
				p := s.Problem.Observations[x.Trial-1].Point
				a, b := distances(coordinate(p, "i"), coordinate(p, "j"))
				for k, truth := range []float64{a, b} {
					off += math.Pow((x.Means[k]-truth)/math.Max(x.SDs[k], 1e-9), 2)
					n++
				}
			}
			if off = math.Sqrt(off / n); off > 2 {
				t.Errorf("%s, %d trials: the recommended front of %.0f values is off by %.1f of its standard deviations, want about 1", noise, trials,
					n, off)
			}
		}
	}
}

// An objective with a limit, both noisy, over a finite space uses the whole budget too, and what is recommended
// is within the limit by the model, not by luck.
func TestNoisyFiniteLimits(t *testing.T) {
	for _, noise := range []Noise{NoiseYes, NoiseAuto} {
		for _, trials := range []int{64, 80} {
			most := 2.0
			o, s := board(t, noise, 8, trials, 5)
			s.Problem.Limits = []study.Limit{{Metric: "b", Max: &most}}
			rng := rand.New(rand.NewPCG(5, 9))
			made, repeats, r := play(t, o, s, func(i, j float64) (study.Values, []float64) {
				a, b := distances(i, j)
				return study.Values{a + rng.NormFloat64()/2}, []float64{b - most + rng.NormFloat64()/2}
			})
			if made != trials || repeats < trials-64 {
				t.Errorf("%s: %d trials with %d repeats, want %d", noise, made, repeats, trials)
			}
			a, b := distances(coordinate(r.Point, "i"), coordinate(r.Point, "j"))
			if math.Abs(r.Mean-a) > 3*r.SD || b > most+0.5 {
				t.Errorf("%s, %d trials: recommends %.3f ± %.4f, in truth %.3f, and %.2f of at most %g", noise, trials, r.Mean, r.SD, a, b, most)
			}
		}
	}
}

// Without noise nothing is repeated in finite spaces, with several objectives and with limits.
func TestExactFiniteFrontsAndLimits(t *testing.T) {
	for _, several := range []bool{true, false} {
		most := 2.0
		o, s := board(t, NoiseAuto, 6, 50, 1)
		if several {
			s.Problem.Objectives = []study.Objective{{Metric: "a", Direction: study.Minimize}, {Metric: "b", Direction: study.Minimize}}
		} else {
			s.Problem.Limits = []study.Limit{{Metric: "b", Max: &most}}
		}
		made, repeats, _ := play(t, o, s, func(i, j float64) (study.Values, []float64) {
			if a, b := distances(i, j); several {
				return study.Values{a, b}, nil
			} else {
				return study.Values{a}, []float64{b - most}
			}
		})
		if made != 36 || repeats != 0 {
			t.Errorf("several: %v: %d trials with %d repeats, want 36 and 0", several, made, repeats)
		}
	}
}

// In a finite space that is too large to be enumerated, a recommendation after a few trials is not sure of the
// luckiest. When all points have been evaluated and the values are noisy, some are evaluated again.
func TestNoisyLargeFiniteSpaces(t *testing.T) {
	const size = 101
	o, s := board(t, NoiseAuto, size, 40, 7)
	rng := rand.New(rand.NewPCG(7, 9))
	truth := func(i, j float64) float64 { return (math.Pow(i-40, 2) + math.Pow(j-70, 2)) / 1000 }
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
