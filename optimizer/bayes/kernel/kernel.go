// Package kernel holds the covariance functions of the Gaussian processes: their
// matrices and gradients, over points of the unit cube with numeric, stepped and
// categorical columns. NewMatern32, NewMatern52, NewLinear and NewConstant return plain
// kernels, and NewFeatures one of known functions. NewSum adds kernels, NewWarped warps the columns
// of an inner kernel, and NewBranched gives it further columns.
package kernel

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// Kernel is a positive semi-definite function k(x, y) of two points. Its
// hyperparameters theta are logarithms where they must be positive. Points are the rows
// of a matrix with Dim columns. A Kernel is immutable and safe for concurrent use.
// Methods panic if shapes do not agree.
type Kernel struct {
	layout
	of    covariance
	drift *features // nil if a process has the prior mean 0
}

// Dim returns the number of columns of a point.
func (k *Kernel) Dim() int { return len(k.columns) }

// NumParams returns the number of hyperparameters, the length of every theta.
func (k *Kernel) NumParams() int { return k.of.params() }

// NumericColumns returns the columns that are not categorical.
func (k *Kernel) NumericColumns() []int { return append([]int(nil), k.numeric...) }

// Prepare returns the rows of x, which MUST come from Transform, with everything that
// theta determines for each of them alone. slopes MUST be true if derivatives by the
// points or by theta are needed.
func (k *Kernel) Prepare(theta []float64, x *mat.Dense, slopes bool) *Points {
	if len(theta) != k.of.params() {
		panic(fmt.Sprintf("kernel: %d hyperparameters, want %d", len(theta), k.of.params()))
	}
	n, d := x.Dims()
	k.checkDim(d)
	return &Points{k, n, slopes, k.of.prepare(theta, x, slopes)}
}

// prepared is points as a covariance sees them under fixed hyperparameters. Each
// covariance has its own type.
type prepared any

// covariance is a kernel's mathematics, row by row of its matrices.
type covariance interface {
	// params is the number of hyperparameters.
	params() int
	// scratch is the number of rows of working memory that row and gradientRow need,
	// each as long as a padded row and at least as long as a point.
	scratch() int
	// prepare computes what depends on single points; slopes requests what derivatives
	// need.
	prepare(theta []float64, x *mat.Dense, slopes bool) prepared
	// row sets dst[j] to k between point i of x and point from+j of y, which may be one
	// of the zeros that pad a table.
	row(dst []float64, scratch [][]float64, x prepared, i int, y prepared, from int)
	// diag sets dst[i] to k(x_i, x_i).
	diag(dst []float64, x prepared)
	// gradientRow sets point[c] to Σ_j w_j ∂k(x_i, y_j)/∂(x_i)_c, in categorical
	// columns to 0, and adds Σ_j w_j ∂k(x_i, y_j)/∂theta_p to sums[p]. weights is
	// padded with zeros. For x = y and a symmetric matrix of weights, sums may instead
	// receive terms that give the same total over all i.
	gradientRow(sums, point []float64, scratch [][]float64, x prepared, i int, y prepared, weights []float64)
	// diagGradient sets dst[c] to ∂k(x_i, x_i)/∂(x_i)_c, in categorical columns
	// to 0.
	diagGradient(dst []float64, x prepared, i int)
}
