package kernel

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Nugget is the covariance of what a point has to itself: k(x, y) = v where x and
// y are the same point, else 0. Observation noise is drawn anew whenever a point
// is evaluated; a nugget is drawn once, so that evaluating a point again tells
// more about it (the distinction of geostatistics; Gramacy and Lee 2012, Cases
// for the nugget in modeling computer experiments). The hyperparameter is log v.
type Nugget struct{ driver }

var _ Kernel = (*Nugget)(nil)

// NewNugget returns the kernel over the columns, at least one.
func NewNugget(columns []Column) *Nugget {
	l := newLayout(columns)
	return &Nugget{driver{l, &nugget{l}}}
}

type nugget struct{ layout }

// marked is points with a number for each that equal points share.
type marked struct {
	points   *mat.Dense
	marks    []uint64
	variance float64
}

func (k *nugget) params() int { return 1 }

func (k *nugget) scratch() int { return 0 }

func (k *nugget) prepare(theta []float64, x *mat.Dense, _ bool) prepared {
	m := &marked{points: mat.DenseCopyOf(x), variance: math.Exp(theta[0])}
	n, _ := x.Dims()
	m.marks = make([]uint64, n)
	for i := range n {
		for _, u := range m.points.RawRowView(i) {
			// Any mixing will do: equal marks are looked at again.
			m.marks[i] = (m.marks[i] ^ math.Float64bits(u+0)) * 0x9e3779b97f4a7c15
		}
	}
	return m
}

// same reports whether point i of m is point j of other.
func (m *marked) same(i int, other *marked, j int) bool {
	if m.marks[i] != other.marks[j] {
		return false
	}
	for c, u := range m.points.RawRowView(i) {
		if u != other.points.At(j, c) {
			return false
		}
	}
	return true
}

func (k *nugget) row(dst []float64, _ [][]float64, x prepared, i int, y prepared, from int) {
	clear(dst)
	px, py := x.(*marked), y.(*marked)
	for j := range min(len(dst), len(py.marks)-from) {
		if px.same(i, py, from+j) {
			dst[j] = px.variance
		}
	}
}

func (k *nugget) diag(dst []float64, x prepared) {
	for i := range dst {
		dst[i] = x.(*marked).variance
	}
}

// gradientRow has ∂k/∂log v = k, and no slope anywhere.
func (k *nugget) gradientRow(sums, point []float64, _ [][]float64, x prepared, i int, y prepared, weights []float64) {
	clear(point)
	px, py := x.(*marked), y.(*marked)
	for j := range py.marks {
		if px.same(i, py, j) {
			sums[0] += weights[j] * px.variance
		}
	}
}

func (k *nugget) diagGradient(dst []float64, _ prepared, _ int) { clear(dst) }
