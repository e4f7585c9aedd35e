package nsga2_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/nsga2"
)

// Cost against quality of four kinds of a thing: the front holds the cheapest
// of each quality.
func ExampleMinimize() {
	cost, flaws := []float64{1, 2, 3, 4}, []float64{9, 5, 6, 2}
	problem := nsga2.Problem{
		Variables:  []nsga2.Variable{{Levels: 4, Categorical: true}},
		Objectives: 2,
		Features:   1,
		Describe:   func(dst, x *mat.Dense) { dst.Copy(x) },
		Score: func(dst, x *mat.Dense) {
			rows, _ := x.Dims()
			for i := range rows {
				kind := int(x.At(i, 0) * 4)
				dst.Set(i, 0, cost[kind])
				dst.Set(i, 1, flaws[kind])
			}
		},
	}
	found, err := nsga2.Minimize(context.Background(), problem, nsga2.Options{Population: 10, Generations: 5}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		fmt.Println(err)
		return
	}
	var costs []float64
	for _, i := range found.Front() {
		costs = append(costs, found.F.At(i, 0))
	}
	slices.Sort(costs)
	fmt.Println(costs)
	// Output: [1 2 4]
}
