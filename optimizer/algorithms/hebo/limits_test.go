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
