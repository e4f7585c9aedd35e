package testfunc

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The minimisers are within all limits and have the published minimum, and no point within
// the limits is better.
func TestLimitedFunctions(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, f := range LimitedFunctions() {
		value, excess := f.Value(f.Minimiser)
		if math.Abs(value-f.Minimum) > 1e-6*math.Abs(f.Minimum) {
			t.Errorf("%s: the value at the minimiser is %.12g, want %.12g", f.Name, value, f.Minimum)
		}
		for k, e := range excess {
			if e > 1e-6 { // the published length of the vessel is rounded
				t.Errorf("%s: limit %d is exceeded by %g at the minimiser", f.Name, k+1, e)
			}
		}
		x, found := make([]float64, len(f.Lower)), 0
		for range 20000 {
			for i := range x {
				x[i] = f.Lower[i] + rng.Float64()*(f.Upper[i]-f.Lower[i])
				if step := f.Step[i]; step > 0 {
					x[i] = f.Lower[i] + step*math.Round((x[i]-f.Lower[i])/step)
				}
			}
			value, excess := f.Value(x)
			if !within(excess) {
				continue
			}
			if found++; value < f.Minimum {
				t.Errorf("%s: %v has %g, below the minimum %g", f.Name, x, value, f.Minimum)
			}
		}
		if found == 0 {
			t.Errorf("%s: no random point is within the limits", f.Name)
		}
	}
}

func within(excess []float64) bool {
	for _, e := range excess {
		if e > 0 {
			return false
		}
	}
	return true
}

// Random points of Gardner's functions are within the limit where the functions that only tell
// whether they can be evaluated say so.
func TestGardnerAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, f := range LimitedFunctions() {
		for _, g := range constrained() {
			if g.Name != f.Name {
				continue
			}
			for range 1000 {
				x := []float64{6 * rng.Float64(), 6 * rng.Float64()}
				if _, excess := f.Value(x); within(excess) != g.Feasible(x) {
					t.Errorf("%s at %v: excess %v, feasible %v", f.Name, x, excess, g.Feasible(x))
				}
			}
		}
	}
}
