package hebo

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/random"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// function is a test function over a cube with a known minimum.
type function struct {
	name    string
	dim     int
	lo, hi  float64
	minimum float64
	at      func(x []float64) float64
}

// branin and hartmann6 are as Surjanovic and Bingham give them in their Virtual
// Library of Simulation Experiments; Branin's second variable, which runs from 0
// to 15, is moved by 5 to share the first one's range.
func branin() function {
	return function{"Branin", 2, -5, 10, 0.397887, func(x []float64) float64 {
		x1, x2 := x[0], x[1]+5
		a := x2 - 5.1/(4*math.Pi*math.Pi)*x1*x1 + 5/math.Pi*x1 - 6
		return a*a + 10*(1-1/(8*math.Pi))*math.Cos(x1) + 10
	}}
}

func hartmann6() function {
	alpha := []float64{1, 1.2, 3, 3.2}
	a := [][]float64{
		{10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14},
	}
	p := [][]float64{
		{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886}, {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
		{0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650}, {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381},
	}
	return function{"Hartmann6", 6, 0, 1, -3.32237, func(x []float64) float64 {
		var sum float64
		for i := range alpha {
			var r float64
			for j := range x {
				r += a[i][j] * (x[j] - p[i][j]) * (x[j] - p[i][j])
			}
			sum -= alpha[i] * math.Exp(-r)
		}
		return sum
	}}
}

func (f function) of(p study.Point) float64 {
	x := make([]float64, f.dim)
	for i := range x {
		x[i] = p[fmt.Sprintf("x%d", i+1)].(float64)
	}
	return f.at(x)
}

// medianRegret returns the median regret of the best value over several seeds.
func medianRegret(t *testing.T, f function, o optimizer.Optimizer, trials, parallelism, seeds int) float64 {
	t.Helper()
	regrets := make([]float64, seeds)
	for seed := range seeds {
		s := optimizertest.NewSession(t, o, optimizertest.Cube(t, f.dim, f.lo, f.hi), uint64(seed))
		s.Run(trials, parallelism, f.of)
		regrets[seed] = s.Best() - f.minimum
	}
	slices.Sort(regrets)
	return regrets[seeds/2]
}

func TestRegretIsBelowRandomAndSobol(t *testing.T) {
	for _, c := range []struct {
		f                   function
		trials, parallelism int
		// factor is the required ratio of the regrets.
		factor float64
	}{
		{branin(), 24, 1, 10},
		{branin(), 40, 8, 10},
		{hartmann6(), 40, 1, 3},
		{hartmann6(), 48, 8, 3},
	} {
		t.Run(fmt.Sprintf("%s with %d pending", c.f.name, c.parallelism), func(t *testing.T) {
			const seeds = 3
			got := medianRegret(t, c.f, New(DefaultOptions()), c.trials, c.parallelism, seeds)
			byChance := medianRegret(t, c.f, random.New(), c.trials, c.parallelism, seeds)
			spread := medianRegret(t, c.f, sobol.New(), c.trials, c.parallelism, seeds)
			t.Logf("median regret after %d trials: gp %.3g, random %.3g, sobol %.3g", c.trials, got, byChance, spread)
			if got*c.factor > min(byChance, spread) {
				t.Errorf("median regret %.3g is not below a %g-th of random's %.3g and sobol's %.3g", got, c.factor, byChance, spread)
			}
		})
	}
}
