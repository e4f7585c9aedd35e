package hebo

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/optimizer/surrogate"
)

// Checks a criterion weighted by the probability to complete, and its gradient, against
// the definitions and finite differences.
func TestChance(t *testing.T) {
	c := chance{loss: -2}
	// A value and the logarithm of a probability, as functions of two coordinates.
	value := func(x []float64) float64 { return math.Sin(x[0]) + x[1]*x[1] }
	logP := func(x []float64) float64 { return -math.Exp(x[0] - 0.5*x[1]) }
	x := []float64{0.3, 0.7}
	p := math.Exp(logP(x))
	for by, want := range map[bayes.Acquisition]float64{
		bayes.LogEI{}: math.Log(math.Exp(value(x)) * p), bayes.LogPI{}: math.Log(math.Exp(value(x)) * p), bayes.UCB{}: p*value(x) + (1-p)*-2,
	} {
		if got := c.of(by, value(x), logP(x)); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", by.Name(), got, want)
		}
		gradient := []float64{math.Cos(x[0]), 2 * x[1]}
		dLogP := []float64{logP(x), -0.5 * logP(x)}
		if got := c.gradient(by, value(x), gradient, logP(x), dLogP); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v with the gradient, want %v", by.Name(), got, want)
		}
		differences := fd.Gradient(nil, func(x []float64) float64 { return c.of(by, value(x), logP(x)) }, x, &fd.Settings{Formula: fd.Central})
		if !floats.EqualApprox(gradient, differences, 1e-7) {
			t.Errorf("%s: gradient %v, by differences %v", by.Name(), gradient, differences)
		}
	}
}

// Every acquisition function, and Thompson sampling, avoids a region that looks best
// but cannot be evaluated.
func TestAllKeepAwayFromFailures(t *testing.T) {
	for name, o := range map[string]Options{
		"ucb":      options(func(o *Options) { o.Acquisition = UCB }),
		"logpi":    options(func(o *Options) { o.Acquisition = LogPI }),
		"mace":     options(func(o *Options) { o.Acquisition, o.Population, o.Generations = MACE, 20, 10 }),
		"thompson": options(func(o *Options) { o.Fantasy = Thompson }),
	} {
		o.Surrogate.Failures = surrogate.FailuresModel
		var best []float64
		failed := 0
		for seed := range uint64(3) {
			s := optimizertest.NewSession(t, New(o), optimizertest.Cube(t, 2, 0, 1), seed+1)
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
			t.Errorf("%s: the best values are %.4f, the bound 0.01; %d of 90 evaluations failed", name, best, failed)
		}
	}
}
