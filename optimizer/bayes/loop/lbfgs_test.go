package loop

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
)

// ascend runs a climber on a function for a number of evaluations.
func ascend(f func([]float64) float64, x []float64, free []bool, evaluations int) *climber {
	c := newClimber(x, free)
	for range evaluations {
		if c.done {
			break
		}
		gradient := fd.Gradient(nil, f, c.next, &fd.Settings{Formula: fd.Central})
		c.observe(f(c.next), gradient)
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
		c.observe(f(c.next), []float64{1})
	}
	if !c.done || c.x[0] < 0.55 || c.x[0] > 0.6 {
		t.Errorf("ended at %v, done: %v", c.x, c.done)
	}
}
