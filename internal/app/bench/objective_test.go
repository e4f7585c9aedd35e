package bench

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/study"
)

// A function that fails by chance does so at the given rate, in the same trials
// of a seed, and one with a feasible region is infeasible outside of it.
func TestFunctionsThatFail(t *testing.T) {
	f, err := testfunc.Get("branin-disk")
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewFunction(f, 0, 0.25)
	if err != nil {
		t.Fatal(err)
	}
	e, err := o.open()
	if err != nil {
		t.Fatal(err)
	}
	const n = 4000
	count := map[optimizer.Outcome]int{}
	for trial := 1; trial <= n; trial++ {
		// Every second point is the disk's centre, the others a corner outside.
		p := study.Point{"x1": 2.5, "x2": 7.5}
		if trial%2 == 0 {
			p = study.Point{"x1": -5.0, "x2": 0.0}
		}
		got, err := e.evaluate(t.Context(), 1, trial, p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := e.evaluate(t.Context(), 1, trial, p)
		if err != nil || again != got {
			t.Fatalf("trial %d ends as %+v, then as %+v (%v)", trial, got, again, err)
		}
		if infeasible := got.kind == optimizer.OutcomeInfeasible; infeasible != (trial%2 == 0) {
			t.Fatalf("trial %d at %v is %s", trial, p, got.kind)
		}
		count[got.kind]++
	}
	// Three standard deviations of a binomial count of 2000.
	if failed := count[optimizer.OutcomeFailed]; math.Abs(float64(failed)-n/8) > 3*math.Sqrt(n/2*0.25*0.75) {
		t.Errorf("%d of %d feasible evaluations failed, want about a quarter", failed, n/2)
	}
}
