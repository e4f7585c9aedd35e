package testfunc_test

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
)

// The regret of the centre of each domain.
func Example() {
	suite, err := testfunc.Suite("uhe")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range suite {
		centre := make([]float64, f.Dim())
		for i := range centre {
			centre[i] = 0.5
		}
		fmt.Printf("%-11s %d-D  regret %.4f\n", f.Name, f.Dim(), f.Value(f.Scale(centre))-f.Minimum)
	}
	// Output:
	// branin      2-D  regret 23.7321
	// deceptive-2 2-D  regret 0.9975
	// h1          2-D  regret 2.0000
	// hartmann3   3-D  regret 3.2348
}

// An evaluation's noise depends only on the seed and the evaluation's index, so that
// parallel runs are reproducible.
func ExampleFunction_Noisy() {
	f, err := testfunc.Get("branin")
	if err != nil {
		fmt.Println(err)
		return
	}
	x := f.Minimisers[0]
	noisy := f.Noisy(0.5, 42)
	later, sooner := noisy.Observe(x, 1), noisy.Observe(x, 0)
	fmt.Println(sooner != later, noisy.Observe(x, 0) == sooner, noisy.Function.Value(x) == f.Value(x))
	// Output: true true true
}
