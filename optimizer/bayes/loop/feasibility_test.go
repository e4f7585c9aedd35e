package loop

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
)

// Checks a criterion weighted by the probability to complete, and its gradient, against
// the definitions and finite differences.
func TestChance(t *testing.T) {
	c := Chance{loss: -2}
	// A value and the logarithm of a probability, as functions of two coordinates.
	value := func(x []float64) float64 { return math.Sin(x[0]) + x[1]*x[1] }
	logP := func(x []float64) float64 { return -math.Exp(x[0] - 0.5*x[1]) }
	x := []float64{0.3, 0.7}
	p := math.Exp(logP(x))
	for by, want := range map[bayes.Acquisition]float64{
		acquisition.EI{}: math.Log(math.Exp(value(x)) * p), acquisition.UCB{}: p*value(x) + (1-p)*-2,
	} {
		if got := c.of(by.Reward(), value(x), logP(x)); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", by.Name(), got, want)
		}
		gradient := []float64{math.Cos(x[0]), 2 * x[1]}
		dLogP := []float64{logP(x), -0.5 * logP(x)}
		if got := c.gradient(by.Reward(), value(x), gradient, logP(x), dLogP); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v with the gradient, want %v", by.Name(), got, want)
		}
		differences := fd.Gradient(
			nil, func(x []float64) float64 { return c.of(by.Reward(), value(x), logP(x)) }, x, &fd.Settings{Formula: fd.Central},
		)
		if !floats.EqualApprox(gradient, differences, 1e-7) {
			t.Errorf("%s: gradient %v, by differences %v", by.Name(), gradient, differences)
		}
	}
}
