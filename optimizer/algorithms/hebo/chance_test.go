package hebo

import (
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
)

// The ensemble avoids a region that looks best but cannot be evaluated.
func TestMACEKeepsAwayFromFailures(t *testing.T) {
	o := options(func(o *Options) { o.Acquisition, o.Surrogate.Failures = MACE, surrogate.FailuresModel })
	var best []float64
	failed := 0
	for seed := range uint64(3) {
		s := optimizertest.NewSession(t, newSmall(o, effort{1000, 20, 10}), optimizertest.Cube(t, 2, 0, 1), seed+1)
		for trial := 1; trial <= 30; trial++ {
			x := s.Ask(1)[0].Point["x1"].(float64)
			if x < 0.4 {
				failed++
				s.End(trial, optimizer.OutcomeInfeasible, 0)
				continue
			}
			s.Tell(trial, (x-0.3)*(x-0.3)) // the minimum is out of reach
		}
		best = append(best, s.Best())
	}
	slices.Sort(best)
	if best[1] > 0.02 || failed > 60 {
		t.Errorf("the best values are %.4f, the bound 0.01; %d of 90 evaluations failed", best, failed)
	}
}
