// Package kernel holds the covariance functions of the Gaussian processes: their
// matrices and gradients, over points of the unit cube with numeric, stepped and
// categorical columns. NewMatern32, NewMatern52, NewLinear and NewConstant return plain
// kernels. NewSum adds kernels, NewWarped warps the columns of an inner kernel, and
// NewBranched gives it further columns.
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
	of covariance
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
