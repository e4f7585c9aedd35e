package gp_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// Choose the next point of a grid to evaluate while another is still being evaluated.
func Example() {
	x, y := mat.NewDense(8, 1, nil), make([]float64, 8)
	for i := range y {
		x.Set(i, 0, float64(i)/7)
		y[i] = math.Cos(12 * x.At(i, 0)) // −1 at π/12 = 0.26 and π/4 = 0.79
	}
	z, _ := gp.Standardize(y)
	k := kernel.NewMatern52(kernel.Continuous(1))
	fitted, err := gp.Fit(context.Background(), k, x, z, gp.DefaultConfig(1), rand.New(rand.NewPCG(1, 0)))
	if err != nil {
		fmt.Println(err)
		return
	}
	grid := mat.NewDense(21, 1, nil)
	for i := range 21 {
		grid.Set(i, 0, float64(i)/20)
	}
	known, _ := fitted.Model.Posterior(x)
	incumbent := slices.Min(known)
	f := fitted.Model.Fantasies()
	candidates := f.Candidates(grid)
	for range 2 {
		mean, variance := candidates.Posterior()
		best, value := 0, math.Inf(-1)
		for i := range variance {
			if v := acquisition.LogEI(mean[i], math.Sqrt(variance[i]), incumbent); v > value {
				best, value = i, v
			}
		}
		fmt.Printf("evaluate %.2f\n", grid.At(best, 0))
		incumbent = min(incumbent, mean[best])
		f.Believe(grid.Slice(best, best+1, 0, 1))
	}
	// Output:
	// evaluate 0.25
	// evaluate 0.80
}
