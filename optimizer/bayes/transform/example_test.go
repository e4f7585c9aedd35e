package transform_test

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/transform"
)

// Losses over several orders of magnitude become evenly spread.
func ExampleFit() {
	losses := []float64{0.001, 0.01, 0.1, 1, 10, 100, 1000}
	t := transform.Fit(losses)
	z := make([]float64, len(losses))
	t.Apply(z, losses)
	fmt.Println(t.Kind())
	fmt.Printf("%.2f\n", z) // −3…3 over their standard deviation, 2.16
	fmt.Printf("%.2f\n", t.Inverse(0))
	// Output:
	// boxcox
	// [-1.39 -0.93 -0.46 0.00 0.46 0.93 1.39]
	// 1.00
}
