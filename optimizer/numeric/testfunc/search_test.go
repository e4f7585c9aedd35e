package testfunc_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/optimize"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/design"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
)

// descend returns the least value that Nelder and Mead's simplex finds from x inside
// the domain of f.
func descend(t *testing.T, f testfunc.Function, x []float64, evaluations int) float64 {
	t.Helper()
	inside := make([]float64, f.Dim())
	problem := optimize.Problem{Func: func(x []float64) float64 {
		for i, v := range x {
			inside[i] = min(f.Upper[i], max(f.Lower[i], v))
		}
		return f.Value(inside)
	}}
	settings := &optimize.Settings{FuncEvaluations: evaluations, Converger: &optimize.FunctionConverge{Absolute: 1e-12, Iterations: 100}}
	simplex := &optimize.NelderMead{SimplexSize: 0.02 * (f.Upper[0] - f.Lower[0])}
	result, err := optimize.Minimize(problem, x, settings, simplex)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	return result.F
}

// A search from scrambled Sobol points and from the minimisers finds nothing below the
// minimum. With few coordinates it comes close to it, so that it also detects a minimum
// that is stated too low.
func TestNothingIsLowerThanTheMinimum(t *testing.T) {
	for _, f := range testfunc.All() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			if value := f.Value; f.Feasible != nil {
				f.Value = func(x []float64) float64 {
					if !f.Feasible(x) {
						return math.Inf(1)
					}
					return value(x)
				}
			}
			points, err := design.NewScrambledSobol(f.Dim(), 1)
			if err != nil {
				t.Fatal(err)
			}
			type start struct {
				x []float64
				y float64
			}
			starts := make([]start, 1<<12)
			u := make([]float64, f.Dim())
			for i := range starts {
				points.At(u, uint32(i))
				x := f.Scale(u)
				starts[i] = start{x, f.Value(x)}
			}
			slices.SortFunc(starts, func(a, b start) int { return cmp.Compare(a.y, b.y) })
			found := starts[0].y
			few, descents := f.Dim() <= 3, 4
			if few {
				descents = 64
			}
			for _, s := range starts[:descents] {
				found = min(found, descend(t, f, s.x, 200*f.Dim()))
			}
			if worst := starts[len(starts)-1].y; few && found > f.Minimum+1e-3*(worst-f.Minimum) {
				t.Errorf("%.17g was found, want the minimum %.17g within a thousandth of the range", found, f.Minimum)
			}
			for _, x := range f.Minimisers {
				found = min(found, descend(t, f, x, 200*f.Dim()))
			}
			if rounding := 1e-9 * max(1, math.Abs(f.Minimum)); found < f.Minimum-rounding {
				t.Errorf("%.17g was found, below the minimum %.17g", found, f.Minimum)
			}
		})
	}
}
