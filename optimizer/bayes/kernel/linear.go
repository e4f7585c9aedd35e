package kernel

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// NewLinear returns the kernel over the columns, at least one, of linear functions without
// a constant, whose slopes are independent and normal with variance v:
//
//	k(x, y) = v·(Σ_numeric z(x_c)·z(y_c) + Σ_categorical [x_c = y_c]),  z(u) = 2u − 1
//
// Coordinates count from the middle of the unit cube; categories are encoded
// one-hot, so that each has a slope of its own. The hyperparameter is log v.
// k(x, x) grows towards the corners.
func NewLinear(columns []Column) *Kernel {
	l := newLayout(columns)
	doubled := make([]float64, len(l.numeric))
	floats.AddConst(2, doubled)
	return &Kernel{layout: l, of: &linear{l, doubled}}
}

type linear struct {
	layout
	doubled []float64 // 2 for each numeric column
}

// centred is points whose numeric coordinates are replaced by z.
type centred struct {
	table
	variance float64
}

func (k *linear) params() int { return 1 }

func (k *linear) scratch() int { return 1 }

func (k *linear) prepare(theta []float64, x *mat.Dense, _ bool) prepared {
	return &centred{k.newTable(x, k.doubled, -1), math.Exp(theta[0])}
}

func (k *linear) row(dst []float64, _ [][]float64, x prepared, i int, y prepared, from int) {
	sx, sy := x.(*centred), y.(*centred)
	products(dst, &sx.table, i, &sy.table, from, sx.variance)
}

func (k *linear) diag(dst []float64, x prepared) {
	for i := range dst {
		k.row(dst[i:i+1], nil, x, i, x, i)
	}
}

// gradientRow has Σ_j w_j ∂k/∂(x_i)_c = 2v Σ_j w_j z(y_jc) and, since ∂k/∂log v =
// k, v·z(x_ic) Σ_j w_j z(y_jc) for each numeric column; each category that two
// points share adds v·w_j.
func (k *linear) gradientRow(sums, point []float64, scratch [][]float64, x prepared, i int, y prepared, weights []float64) {
	s, sy := x.(*centred), y.(*centred)
	m := scratch[0][:len(point)]
	moments(m, weights, &s.table, i, &sy.table)
	total := floats.Sum(weights[:sy.n])
	for j, c := range k.numeric {
		z := s.data[j*s.stride+i]
		around := z*total - m[j]
		sums[0] += s.variance * z * around
		point[c] = 2 * s.variance * around
	}
	for j, c := range k.categorical {
		sums[0] += s.variance * (total - m[s.numeric+j])
		point[c] = 0
	}
}

// diagGradient has ∂k(x, x)/∂x_c = 4v·z(x_c).
func (k *linear) diagGradient(dst []float64, x prepared, i int) {
	s := x.(*centred)
	clear(dst)
	for j, c := range k.numeric {
		dst[c] = 4 * s.variance * s.data[j*s.stride+i]
	}
}
