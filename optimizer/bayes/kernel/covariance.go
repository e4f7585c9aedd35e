package kernel

import "gonum.org/v1/gonum/mat"

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
