package kernel

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// Branch is one value of a column that decides what the other columns mean, such as the
// name of an algorithm, and the numeric columns that have a scale of their own there.
type Branch struct {
	// Column is the deciding column, Code its coordinate in the branch.
	Column int
	Code   float64
	// Numeric are the indices of the columns with a scale of their own.
	Numeric []int
}

// BranchedColumns returns the columns that the kernel inside NewBranched sees, first the
// given ones, then those of each branch in turn.
func BranchedColumns(columns []Column, branches []Branch) []Column {
	seen := WithoutSnap(columns)
	for _, b := range branches {
		seen = append(seen, Continuous(len(b.Numeric))...)
	}
	return seen
}

// NewBranched returns a kernel inside which points have further columns: for each branch b
// and each of its numeric columns c, a column
//
//	x_bc = x_c in the branch, and ½ in all others
//
// So a stationary kernel with a lengthscale for each column can fit a function that is
// flat in one branch and steep in another: between two points of a branch, x_c counts with
// 1/ℓ_c² + 1/ℓ_bc². Where all ℓ_bc are long, the branches share their scales. Transform
// adds no columns; they are part of k.
//
// inner must have been made with BranchedColumns(columns, branches). The hyperparameters
// are those of inner.
func NewBranched(inner *Kernel, columns []Column, branches []Branch) *Kernel {
	if want := len(BranchedColumns(columns, branches)); inner.Dim() != want {
		panic(fmt.Sprintf("kernel: a kernel over %d columns inside one whose points have %d with their branches", inner.Dim(), want))
	}
	l := newLayout(columns)
	return &Kernel{layout: l, of: &branched{l, branches, inner.of, inner.Dim()}}
}

type branched struct {
	layout
	branches []Branch
	inner    covariance
	dim      int // columns of the inner kernel
}

// grown is points with the columns of their branches.
type grown struct {
	inner prepared
	x     *mat.Dense // without them
}

func (k *branched) params() int { return k.inner.params() }

func (k *branched) scratch() int { return k.inner.scratch() + 1 }

// width implements wide.
func (k *branched) width() int { return k.dim }

func (k *branched) prepare(theta []float64, x *mat.Dense, slopes bool) prepared {
	n, _ := x.Dims()
	points := mat.NewDense(n, k.dim, nil)
	for i := range n {
		from, to := x.RawRowView(i), points.RawRowView(i)
		copy(to, from)
		k.each(from, func(at, c int, inside bool) {
			to[at] = 0.5
			if inside {
				to[at] = from[c]
			}
		})
	}
	return &grown{k.inner.prepare(theta, points, slopes), x}
}

// each calls f with the index of each further column, that of the column it repeats, and
// whether the point x is in its branch.
func (k *branched) each(x []float64, f func(at, c int, inside bool)) {
	at := len(x)
	for _, b := range k.branches {
		for _, c := range b.Numeric {
			f(at, c, x[b.Column] == b.Code)
			at++
		}
	}
}

func (k *branched) row(dst []float64, scratch [][]float64, x prepared, i int, y prepared, from int) {
	k.inner.row(dst, scratch, x.(*grown).inner, i, y.(*grown).inner, from)
}

func (k *branched) diag(dst []float64, x prepared) { k.inner.diag(dst, x.(*grown).inner) }

func (k *branched) gradientRow(sums, point []float64, scratch [][]float64, x prepared, i int, y prepared, weights []float64) {
	g, all := x.(*grown), scratch[k.inner.scratch()][:k.dim]
	k.inner.gradientRow(sums, all, scratch, g.inner, i, y.(*grown).inner, weights)
	k.fold(point, all, g.x.RawRowView(i))
}

func (k *branched) diagGradient(dst []float64, x prepared, i int) {
	g, all := x.(*grown), make([]float64, k.dim)
	k.inner.diagGradient(all, g.inner, i)
	k.fold(dst, all, g.x.RawRowView(i))
}

// fold sets the derivatives by the columns of the point x from those by all. A coordinate moves its own
// column, and its further column only in the branch: elsewhere that stays at ½.
func (k *branched) fold(point, all, x []float64) {
	copy(point, all[:len(x)])
	k.each(x, func(at, c int, inside bool) {
		if inside {
			point[c] += all[at]
		}
	})
}
