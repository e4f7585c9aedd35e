package loop

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"
)

// normals returns standard normal numbers for the draws (columns) of points (rows) as a
// Latin hypercube: each row is a random order of the midpoints of equally probable
// bins. A row sums to 0, so the mean over the draws stays at the posterior mean.
func normals(points, draws int, rng *rand.Rand) *mat.Dense {
	z := mat.NewDense(points, draws, nil)
	for i := range points {
		row := z.RawRowView(i)
		for s, bin := range rng.Perm(draws) {
			row[s] = mathext.NormalQuantile((float64(bin) + 0.5) / float64(draws))
		}
	}
	return z
}
