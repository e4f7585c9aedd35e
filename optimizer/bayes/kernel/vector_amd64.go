package kernel

import "golang.org/x/sys/cpu"

func vectors() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

// distancesVector computes distances for the first elements that fill vectors of four,
// and returns how many those are.
func distancesVector(dst []float64, x *table, i int, y *table, from int, weights []float64, factor float64) int {
	n := checkPairs(dst, x, i, y, from)
	if n == 0 || len(weights) != x.categorical {
		return 0
	}
	distancesAVX2(&dst[0], n, &x.data[i], x.stride, &y.data[from], y.stride, x.numeric, weights, factor)
	return n
}

// productsVector computes products for the elements that distancesVector would.
func productsVector(dst []float64, x *table, i int, y *table, from int, factor float64) int {
	n := checkPairs(dst, x, i, y, from)
	if n == 0 {
		return 0
	}
	productsAVX2(&dst[0], n, &x.data[i], x.stride, &y.data[from], y.stride, x.numeric, x.categorical, factor)
	return n
}

// checkPairs returns how many of the first elements fill vectors, after checking the
// bounds that the assembly does not check.
func checkPairs(dst []float64, x *table, i int, y *table, from int) int {
	n := len(dst) / 4 * 4
	if n == 0 || !vectors() {
		return 0
	}
	last := x.numeric + x.categorical - 1
	_, _ = x.column(last)[i], y.column(last)[from:][n-1]
	return n
}

func momentsVector(dst, g []float64, x *table, i int, y *table) bool {
	if !vectors() || y.n == 0 {
		return false
	}
	last := len(dst) - 1
	_, _ = x.column(last)[i], y.column(last)[y.stride-1]
	_ = g[y.stride-1]
	momentsAVX2(&dst[0], &g[0], y.stride, &x.data[i], x.stride, &y.data[0], x.numeric, len(dst)-x.numeric)
	return true
}

func covariancesVector(v, e []float64, square, variance float64) int {
	n := len(v) / 4 * 4
	if n == 0 || !vectors() {
		return 0
	}
	_ = e[n-1]
	covariancesAVX2(&v[0], &e[0], n, square, variance)
	return n
}

func slopesVector(v, e, weights []float64, f *radial, lanes *[4]float64) bool {
	n := len(v)
	if n == 0 || n%4 != 0 || !vectors() {
		return false
	}
	_, _ = e[n-1], weights[n-1]
	slopesAVX2(&v[0], &e[0], &weights[0], n, f.square, f.slope, -f.slope*f.linear, lanes)
	return true
}

// distancesAVX2 is distances for n elements, a positive multiple of 4. x is at
// the point and y at the first of the points, each in its first column.
//
//go:noescape
func distancesAVX2(dst *float64, n int, x *float64, xStride int, y *float64, yStride, numeric int, weights []float64, factor float64)

// productsAVX2 is products, as distancesAVX2 is distances.
//
//go:noescape
func productsAVX2(dst *float64, n int, x *float64, xStride int, y *float64, yStride, numeric, categorical int, factor float64)

// momentsAVX2 is moments for n points, a positive multiple of 16, which is also
// the length of y's columns.
//
//go:noescape
func momentsAVX2(dst, weights *float64, n int, x *float64, xStride int, y *float64, numeric, categorical int)

// covariancesAVX2 is radial.covariances for n elements, a positive multiple of 4.
//
//go:noescape
func covariancesAVX2(v, e *float64, n int, square, variance float64)

// slopesAVX2 is radial.slopes for n elements, a positive multiple of 4, with
// rise = −slope·linear. It adds to the lanes.
//
//go:noescape
func slopesAVX2(v, e, weights *float64, n int, square, slope, rise float64, lanes *[4]float64)
