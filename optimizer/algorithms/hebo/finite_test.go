package hebo

import (
	"errors"
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// hill is a study over 8 × 8 points that maximises a value of at most 0.6, with so much noise, by up to so many
// trials. It returns how many there were, how many of them repeat a point, and what is recommended.
func hill(t *testing.T, noise Noise, sd float64, trials int, seed uint64) (made, repeats int, r *optimizer.Recommendation) {
	t.Helper()
	board := optimizertest.Space(t, []study.Parameter{
		{Name: "i", Type: study.Int, Min: number(0), Max: number(7)}, {Name: "j", Type: study.Int, Min: number(0), Max: number(7)},
	}, nil)
	o := New(options(func(o *Options) { o.Noise = noise }))
	s := optimizertest.NewSession(t, o, board, seed)
	s.Problem.MaxTrials = trials
	rng := optimizer.NewRand(seed, 9)
	for made < trials {
		batch, err := s.TryAsk(t.Context(), 1)
		if errors.Is(err, optimizer.ErrExhausted) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if made++; batch[0].Repeat {
			repeats++
		}
		i, j := coordinate(batch[0].Point, "i"), coordinate(batch[0].Point, "j")
		s.Tell(made, 0.02*((i-5)*(i-5)+(j-2)*(j-2))-0.6+sd*rng.NormFloat64())
	}
	r, err := optimizer.Recommend(t.Context(), o, &s.Problem, s.State)
	if err != nil {
		t.Fatal(err)
	}
	r.Mean = -r.Mean
	return made, repeats, r
}

func coordinate(p study.Point, name string) float64 { return float64(p[name].(int64)) }

// A noisy study over a finite space uses its budget: when all points have been evaluated, it evaluates good
// ones again, also if nobody has said that there is noise. What it recommends is not the luckiest evaluation.
func TestNoisyFiniteSpacesUseTheirBudget(t *testing.T) {
	for _, noise := range []Noise{NoiseYes, NoiseAuto} {
		for seed := range uint64(2) {
			made, repeats, r := hill(t, noise, 0.1, 80, seed+1)
			if made != 80 || repeats < 16 {
				t.Errorf("%s, seed %d: %d trials with %d repeats, want 80 with at least 16", noise, seed, made, repeats)
			}
			if math.Abs(r.Mean-0.6) > 0.06 || r.SD < 0.01 || r.SD > 0.05 {
				t.Errorf("%s, seed %d: recommends %.3f ± %.4f, want about 0.6 ± 0.03", noise, seed, r.Mean, r.SD)
			}
		}
	}
}

// Where nothing was learnt of the noise, since the budget has no room for repeats, the recommendation does
// not claim to know the value of the luckiest.
func TestFiniteSpacesWithoutRepeatsAreUnsure(t *testing.T) {
	for seed := range uint64(2) {
		_, _, r := hill(t, NoiseAuto, 0.1, 64, seed+2)
		if r.SD < 0.02 || math.Abs(r.Mean-0.6) > 3*r.SD {
			t.Errorf("seed %d: recommends %.3f ± %.4f, in truth at most 0.6", seed, r.Mean, r.SD)
		}
	}
}

// A study without noise evaluates no point of a finite space twice, and recommends what it has seen.
func TestExactFiniteSpacesAreNotRepeated(t *testing.T) {
	for _, noise := range []Noise{NoiseNo, NoiseAuto} {
		made, repeats, r := hill(t, noise, 0, 80, 1)
		if made != 64 || repeats != 0 || math.Abs(r.Mean-0.6) > 1e-3 {
			t.Errorf("%s: %d trials with %d repeats, recommends %v; want 64, 0 and 0.6", noise, made, repeats, r.Mean)
		}
	}
	if made, _, _ := hill(t, NoiseNo, 0.1, 80, 1); made != 64 {
		t.Errorf("%d trials of a study that is said to be free of noise, want 64", made)
	}
}
