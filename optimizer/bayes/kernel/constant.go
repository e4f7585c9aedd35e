package kernel

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// NewConstant returns the covariance of an unknown constant, k(x, y) = v, over the
// columns, at least one. In a sum it gives the process a mean that is learnt from the
// data, as in generalised least squares: observations close together, as a search leaves
// them near its best ones, count little more than one. The hyperparameter is log v.
func NewConstant(columns []Column) *Kernel {
	l := newLayout(columns)
	return &Kernel{layout: l, of: &constant{l}}
}

type constant struct{ layout }

func (k *constant) params() int { return 1 }

func (k *constant) scratch() int { return 0 }

// level is points under a Constant: their number, since all are alike, and v.
type level struct {
	points   int
	variance float64
}

func (k *constant) prepare(theta []float64, x *mat.Dense, _ bool) prepared {
	n, _ := x.Dims()
	return level{n, math.Exp(theta[0])}
}

func (k *constant) row(dst []float64, _ [][]float64, x prepared, _ int, _ prepared, _ int) {
	k.diag(dst, x)
}

func (k *constant) diag(dst []float64, x prepared) {
	for i := range dst {
		dst[i] = x.(level).variance
	}
}

// gradientRow has ∂k/∂log v = k, and no slope anywhere.
func (k *constant) gradientRow(sums, point []float64, _ [][]float64, x prepared, _ int, y prepared, weights []float64) {
	clear(point)
	sums[0] += x.(level).variance * floats.Sum(weights[:y.(level).points])
}

func (k *constant) diagGradient(dst []float64, _ prepared, _ int) { clear(dst) }
