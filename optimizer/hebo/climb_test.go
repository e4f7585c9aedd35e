package hebo

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"
)

// ascend runs a climber on a function for a number of evaluations.
func ascend(f func([]float64) float64, x []float64, free []bool, evaluations int) *climber {
	c := newClimber(x, free)
	for range evaluations {
		if c.done {
			break
		}
		gradient := fd.Gradient(nil, f, c.trial, &fd.Settings{Formula: fd.Central})
		c.report(f(c.trial), gradient)
	}
	return c
}

func allFree(n int) []bool {
	free := make([]bool, n)
	for i := range free {
		free[i] = true
	}
	return free
}

func TestClimberReachesTheMaximum(t *testing.T) {
	hill := func(centre ...float64) func([]float64) float64 {
		return func(x []float64) float64 {
			var sum float64
			for i, c := range centre {
				sum -= math.Pow(10, float64(i)) * (x[i] - c) * (x[i] - c)
			}
			return sum
		}
	}
	steep := func(x []float64) float64 { return 1e6 * hill(0.5, 0.5)(x) }
	// Rosenbrock's function (1960) with its valley in the unit square.
	rosenbrock := func(x []float64) float64 {
		u, v := 2*x[0], 2*x[1]
		return -100*(v-u*u)*(v-u*u) - (1-u)*(1-u)
	}
	for name, c := range map[string]struct {
		f           func([]float64) float64
		start, want []float64
		evaluations int
		tolerance   float64
	}{
		"inside":            {hill(0.3, 0.7, 0.2), []float64{0.9, 0.1, 0.5}, []float64{0.3, 0.7, 0.2}, 30, 1e-3},
		"at a bound":        {hill(0.3, 1.7), []float64{0.9, 0.1}, []float64{0.3, 1}, 30, 1e-3},
		"in a corner":       {hill(-0.5, 1.7), []float64{0.5, 0.5}, []float64{0, 1}, 30, 1e-9},
		"starts in another": {hill(0.4, 0.6), []float64{1, 0}, []float64{0.4, 0.6}, 30, 1e-3},
		"steep, close by":   {steep, []float64{0.48, 0.51}, []float64{0.5, 0.5}, 30, 1e-3},
		"Rosenbrock":        {rosenbrock, []float64{0.1, 0.6}, []float64{0.5, 0.5}, 100, 0.02},
	} {
		got := ascend(c.f, c.start, allFree(len(c.start)), c.evaluations)
		if floats.Distance(got.x, c.want, math.Inf(1)) > c.tolerance {
			t.Errorf("%s: reached %v, want %v", name, got.x, c.want)
		}
		if got.value != c.f(got.x) {
			t.Errorf("%s: says %v at a place of value %v", name, got.value, c.f(got.x))
		}
	}
}

func TestClimberHoldsWhatIsNotFree(t *testing.T) {
	f := func(x []float64) float64 { return x[0] + x[1] }
	c := ascend(f, []float64{0.25, 0.5}, []bool{false, true}, 30)
	if c.x[0] != 0.25 || c.x[1] != 1 {
		t.Errorf("reached %v, want 0.25 and 1", c.x)
	}
	if c := newClimber([]float64{0.5}, []bool{false}); !c.done {
		t.Error("a climber that cannot move is not done")
	}
}

// A forbidden region stops a climber without breaking it.
func TestClimberStaysWhereItMayBe(t *testing.T) {
	f := func(x []float64) float64 {
		if x[0] > 0.6 {
			return math.Inf(-1)
		}
		return x[0]
	}
	c := newClimber([]float64{0.5}, allFree(1))
	for range 50 {
		if c.done {
			break
		}
		c.report(f(c.trial), []float64{1})
	}
	if !c.done || c.x[0] < 0.55 || c.x[0] > 0.6 {
		t.Errorf("ended at %v, done: %v", c.x, c.done)
	}
}

// The criterion's gradient against finite differences of its value.
func TestCriterionGradient(t *testing.T) {
	mean, variance := []float64{0.2, -0.4, 1.5}, 0.3
	for _, c := range []criterion{{kind: LogEI}, {kind: LogEI, noise: 0.2}, {kind: LogPI}, {kind: UCB}} {
		c.kappa, c.incumbents = 1.5, []float64{-0.1, -0.6, 0.2}
		at := func(v []float64) float64 { return c.value(v[:3], v[3]) }
		want := fd.Gradient(nil, at, append(append([]float64{}, mean...), variance), &fd.Settings{Formula: fd.Central})
		got := make([]float64, 4)
		value, dVariance := c.gradient(got[:3], mean, variance)
		got[3] = dVariance
		if !floats.EqualApprox(got, want, 1e-6) || value != c.value(mean, variance) {
			t.Errorf("%s, noise %g: gradient %v, by differences %v", c.kind, c.noise, got, want)
		}
	}
}

// Checks the value of one more evaluation of a point against its definition by
// quadrature: the expected decrease of the best posterior mean.
func TestKnowledgeAgainstQuadrature(t *testing.T) {
	const variance, noise, mean = 0.3, 0.2, 0.1
	c := criterion{noise: noise}
	for _, rival := range []float64{-0.4, 0.1, 0.5} {
		const steps = 200_000
		sd := math.Sqrt(variance + noise)
		best := 0.0 // expected, by the midpoint rule over ±10 sd of the outcome
		for i := range steps {
			z := -10 + 20*(float64(i)+0.5)/steps
			posterior := mean + variance/(variance+noise)*sd*z
			best += min(posterior, rival) * distuv.UnitNormal.Prob(z) * 20 / steps
		}
		want := math.Log(min(mean, rival) - best)
		if got := c.knowledge(mean, variance, rival); math.Abs(got-want) > 1e-6 {
			t.Errorf("rival %g: %v, by quadrature %v", rival, got, want)
		}
	}
}
