package hebo

import (
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// frontRepeats plays two noisy objectives, some trials at once, and returns all suggestions.
func frontRepeats(t *testing.T, o optimizer.Optimizer, trials, parallel int, noise float64) []optimizer.Suggestion {
	t.Helper()
	s := optimizertest.NewSession(t, o, optimizertest.Cube(t, 2, 0, 1), 3)
	s.Problem.MaxTrials, s.Problem.Parallelism = trials, parallel
	s.Problem.Objectives = []study.Objective{{Metric: "a", Direction: study.Minimize}, {Metric: "b", Direction: study.Minimize}}
	rng := optimizer.NewRand(4, 4)
	var all []optimizer.Suggestion
	for told := 0; told < trials; told++ {
		if free := min(parallel-len(s.Problem.Pending), trials-s.Problem.First+1); free > 0 {
			all = append(all, s.Ask(free)...)
		}
		keys := map[string]bool{}
		for _, p := range s.Problem.Pending {
			key := s.Problem.Space.Key(p.Point)
			if keys[key] {
				t.Errorf("%v is pending twice", p.Point)
			}
			keys[key] = true
		}
		p := s.Problem.Pending[0]
		x, y := p.Point["x1"].(float64), p.Point["x2"].(float64)
		s.TellAll(p.Trial, study.Values{x*x + y + noise*rng.NormFloat64(), (1-x)*(1-x) + y + noise*rng.NormFloat64()})
	}
	return all
}

func repeated(all []optimizer.Suggestion) (trials []int) {
	for i, b := range all {
		if b.Repeat {
			trials = append(trials, i+1)
		}
	}
	return trials
}

// Points of a front that is known to be noisy are evaluated again, at most three of ten trials, and
// none twice at once.
func TestNoisyFrontIsEvaluatedAgain(t *testing.T) {
	const trials = 48
	noisy := DefaultOptions()
	noisy.Noise = NoiseYes
	all := frontRepeats(t, New(noisy), trials, 8, 0.1)
	if n := len(repeated(all)); n < 3 || 10*n > 3*trials+10 {
		t.Errorf("trials %v of %d are repeats", repeated(all), trials)
	}
	if again := frontRepeats(t, New(noisy), trials, 8, 0.1); !slices.Equal(repeated(all), repeated(again)) {
		t.Errorf("trials %v are repeats, and %v in the same study again", repeated(all), repeated(again))
	}
}

// Nothing is evaluated again without the setting, or where noise is not known.
func TestFrontIsNotEvaluatedAgain(t *testing.T) {
	once := DefaultOptions()
	once.Noise, once.Replicate = NoiseYes, false
	for _, o := range []Options{once, DefaultOptions()} {
		if of := repeated(frontRepeats(t, New(o), 48, 8, 0.1)); of != nil {
			t.Errorf("noise %s, replicate %v: trials %v are repeats", o.Noise, o.Replicate, of)
		}
	}
}
