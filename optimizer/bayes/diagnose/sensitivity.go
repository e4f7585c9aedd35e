package diagnose

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/design"
)

// Sensitivity holds the share of a function's variance that each of its inputs accounts
// for (Sobol' 1993), with all inputs independent and uniform over [0, 1].
type Sensitivity struct {
	// First are the first-order indices, V[E(f | xᵢ)]/V[f]: the share of an input
	// by itself. They sum to 1 for a sum of functions of one input each, and to
	// less where inputs interact.
	First []float64
	// Total are the total indices, E[V(f | all but xᵢ)]/V[f]: the share of an input
	// with all its interactions. It is 0 for an input without effect.
	Total []float64
	// Mean and Variance are the function's.
	Mean, Variance float64
}

// Sobol estimates the indices of f on [0, 1)^dim from n·(dim + 2) of its values, over a
// scrambled Sobol sequence drawn from seed: the first-order ones as in Saltelli et al.
// (2010, Computer Physics Communications 181, table 2b), the total ones as in Jansen
// (1999). n should be a power of two; the error falls about like 1/n for smooth
// functions. f is called with dim+2 batches of n rows and must return a finite value
// for each row. All indices of a constant function are 0. The error wraps
// design.ErrDimension if 2·dim is more than design.MaxDim.
func Sobol(f func(x *mat.Dense) []float64, dim, n int, seed uint64) (*Sensitivity, error) {
	if n < 2 {
		panic(fmt.Sprintf("diagnose: sensitivity from %d points", n))
	}
	a, b, err := pair(dim, n, seed)
	if err != nil {
		return nil, err
	}
	s := &Sensitivity{First: make([]float64, dim), Total: make([]float64, dim)}
	fa, fb := f(a), f(b)
	s.Mean, s.Variance = stat.PopMeanVariance(append(append(make([]float64, 0, 2*n), fa...), fb...), nil)
	if !(s.Variance > tiny(fa, fb)) {
		return s, nil
	}
	mixed := mat.DenseCopyOf(a)
	column := make([]float64, n)
	for i := range dim {
		mixed.SetCol(i, mat.Col(column, i, b))
		fm := f(mixed)
		mixed.SetCol(i, mat.Col(column, i, a))
		for j, v := range fm {
			// Subtracting the mean avoids cancellation: its square would dominate the
			// sum.
			s.First[i] += (fb[j] - s.Mean) * (v - fa[j])
			s.Total[i] += (fa[j] - v) * (fa[j] - v) / 2
		}
		s.First[i] /= float64(n) * s.Variance
		s.Total[i] /= float64(n) * s.Variance
	}
	return s, nil
}

// tiny is the variance below which values differ only by rounding.
func tiny(fa, fb []float64) float64 {
	var largest float64
	for i := range fa {
		largest = max(largest, math.Abs(fa[i]), math.Abs(fb[i]))
	}
	return 1e-26 * largest * largest
}

// pair returns two independent samples of n points: the two halves of the points of a
// sequence of twice the dimensions.
func pair(dim, n int, seed uint64) (a, b *mat.Dense, err error) {
	sequence, err := design.NewScrambledSobol(2*dim, seed)
	if err != nil {
		return nil, nil, fmt.Errorf("sensitivity to %d inputs: %w", dim, err)
	}
	a, b = mat.NewDense(n, dim, nil), mat.NewDense(n, dim, nil)
	both := make([]float64, 2*dim)
	for j := range n {
		sequence.At(both, uint32(j))
		copy(a.RawRowView(j), both[:dim])
		copy(b.RawRowView(j), both[dim:])
	}
	return a, b, nil
}
