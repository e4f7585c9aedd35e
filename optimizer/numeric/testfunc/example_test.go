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
