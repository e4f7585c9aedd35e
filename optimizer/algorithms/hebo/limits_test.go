package hebo

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestConformanceWithLimits(t *testing.T) {
	optimizertest.RunLimited(t, func() optimizer.Optimizer { return New(DefaultOptions()) })
}

// The search finds the minimum within a limit on which it lies, and no point outside counts.
func TestMinimumWithinLimits(t *testing.T) {
	for _, f := range testfunc.LimitedFunctions() {
		if f.Name == "pressure-vessel" {
			continue // make objectives plays it
		}
		s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 2, 0, 6), 1)
		s.Problem.MaxTrials, s.Problem.Parallelism, s.Problem.Limits = 48, 8, []study.Limit{{Metric: "c", Max: new(0.0)}}
		for len(s.Problem.Observations) < 48 {
			if free := min(8-len(s.Problem.Pending), 48-s.Problem.First+1); free > 0 {
				s.Ask(free)
			}
			p := s.Problem.Pending[0]
			value, excess := f.Value([]float64{p.Point["x1"].(float64), p.Point["x2"].(float64)})
			s.Tell(p.Trial, value)
			s.Problem.Observations[len(s.Problem.Observations)-1].Excess = excess
		}
		best := s.Problem.Best()
		if best == nil || best.Mean > f.Minimum+0.05 {
			t.Errorf("%s: the best within the limit is %+v, the minimum is %v", f.Name, best, f.Minimum)
		}
	}
}

// When every point of a space has been evaluated and evaluations are noisy, those are evaluated again that may
// be the best within the limit. The lowest values lie outside of it, and nothing can be gained there.
func TestRepeatsStayWithinLimits(t *testing.T) {
	options := DefaultOptions()
	options.Noise = NoiseYes
	low, high := 1.0, 12.0
	space := optimizertest.Space(t, []study.Parameter{{Name: "n", Type: study.Int, Min: &low, Max: &high}}, nil)
	s := optimizertest.NewSession(t, New(options), space, 1)
	s.Problem.MaxTrials, s.Problem.Limits = 30, []study.Limit{{Metric: "c", Max: new(0.0)}}
	rng := optimizer.NewRand(1, 2)
	repeats, outside := 0, 0
	for trial := 1; trial <= 30; trial++ {
		b := s.Ask(1)[0]
		n := float64(b.Point["n"].(int64))
		if b.Repeat {
			repeats++
			if n < 5 {
				outside++
			}
		}
		s.Tell(trial, n+0.3*rng.NormFloat64())
		s.Problem.Observations[trial-1].Excess = []float64{4.5 - n + 0.1*rng.NormFloat64()}
	}
	if repeats < 15 || outside > repeats/5 {
		t.Errorf("%d of %d repeats are outside of the limit, which is at 4.5", outside, repeats)
	}
}
