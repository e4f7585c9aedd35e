// Package kernel holds the covariance functions of the Gaussian processes:
// their matrices and the gradients of them, over points of the unit cube with
// numeric, stepped and categorical columns. Matern32, Matern52, Linear
// and Constant are plain kernels; Sum adds kernels, and Warped bends the columns
// beneath one.
package kernel

import (
	"gonum.org/v1/gonum/mat"
)

// Kernel is a positive semi-definite function k(x, y) of two points, with
// hyperparameters theta that live in log space where they are positive. Points
// are the rows of a matrix with Dim columns. All methods but Transform expect
// points that Transform returned. A Kernel is immutable and safe for concurrent
// use. Methods panic if shapes do not agree. Kernels are made by the constructors
// of this package, from each other where it must be.
type Kernel interface {
	// Dim is the number of columns of a point.
	Dim() int
	// NumParams is the number of hyperparameters, the length of every theta.
	NumParams() int
	// Transform returns the points as the kernel sees them: stepped and
	// categorical columns snapped to their values. It does not change x.
	// Transforming a second time changes nothing.
	Transform(x mat.Matrix) *mat.Dense
	// Gram sets dst, n×n, to k(x_i, x_j) for the n rows of x.
	Gram(dst *mat.SymDense, theta []float64, x *mat.Dense)
	// Cross sets dst, n×m, to k(x_i, y_j) for the n rows of x and the m of y.
	Cross(dst *mat.Dense, theta []float64, x, y *mat.Dense)
	// Prepare returns the rows of x with what theta makes of each of them alone,
	// for points that are used more often than once and for derivatives by
	// single points. slopes says whether there will be derivatives by them or
	// by theta.
	Prepare(theta []float64, x *mat.Dense, slopes bool) *Points
	// Diag sets dst[i] to k(x_i, x_i).
	Diag(dst []float64, theta []float64, x *mat.Dense)
	// ParamGradient sets dst[p] to Σ_ij w_ij ∂k(x_i, x_j)/∂theta_p for each
	// hyperparameter p: the trace of w·∂K/∂theta_p, which is all that the
	// gradient of a likelihood needs.
	ParamGradient(dst []float64, theta []float64, x *mat.Dense, w *mat.SymDense)
	// PairGradient sets dst, n×Dim, to Σ_j w_ij ∂k(x_i, x_j)/∂(x_i)_c, where
	// the derivative is by k's first argument alone, also for j = i. So twice
	// dst is the gradient of Σ_ij w_ij k(x_i, x_j) by the points. Categorical
	// columns get 0; snapped ones do not: k is differentiated by the
	// coordinate that Transform returned, as if it could move.
	PairGradient(dst *mat.Dense, theta []float64, x *mat.Dense, w *mat.SymDense)

	// covariance and columnLayout give the kernels that contain this one its
	// mathematics and its columns.
	covariance() covariance
	columnLayout() layout
}
