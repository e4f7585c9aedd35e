// Package kernel holds the covariance functions of the Gaussian processes: their
// matrices and gradients, over points of the unit cube with numeric, stepped and
// categorical columns. Matern32, Matern52, Linear and Constant are plain kernels; Sum
// adds kernels, and Warped warps the columns of its inner kernel.
package kernel

import (
	"gonum.org/v1/gonum/mat"
)

// Kernel is a positive semi-definite function k(x, y) of two points. Its
// hyperparameters theta are logarithms where they must be positive. Points are the rows
// of a matrix with Dim columns. All methods but Transform expect points that Transform
// returned. A Kernel is immutable and safe for concurrent use. Methods panic if shapes
// do not agree. Only this package can implement it.
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
	// Prepare returns the rows of x with everything that theta determines for each of
	// them alone. Use it for points that are needed more than once and for derivatives
	// with respect to single points. slopes MUST be true if derivatives by the points
	// or by theta are needed.
	Prepare(theta []float64, x *mat.Dense, slopes bool) *Points
	// Diag sets dst[i] to k(x_i, x_i).
	Diag(dst []float64, theta []float64, x *mat.Dense)
	// ParamGradient sets dst[p] to Σ_ij w_ij ∂k(x_i, x_j)/∂theta_p for each
	// hyperparameter p: the trace of w·∂K/∂theta_p, which is what the gradient of a
	// likelihood needs.
	ParamGradient(dst []float64, theta []float64, x *mat.Dense, w *mat.SymDense)
	// PairGradient sets dst, n×Dim, to Σ_j w_ij ∂k(x_i, x_j)/∂(x_i)_c, the derivative
	// with respect to k's first argument only, also for j = i. Twice dst is therefore
	// the gradient of Σ_ij w_ij k(x_i, x_j) with respect to the points. Categorical
	// columns get 0. Snapped columns do not: k is differentiated at the coordinate that
	// Transform returned as if it were continuous.
	PairGradient(dst *mat.Dense, theta []float64, x *mat.Dense, w *mat.SymDense)

	// covariance and columnLayout give enclosing kernels this kernel's mathematics and
	// columns.
	covariance() covariance
	columnLayout() layout
}
