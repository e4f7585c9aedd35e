package warp

// Values sets dst[i] to w(x[i]; a, b). dst may be x.
func Values(dst, x []float64, a, b float64) {
	for i, v := range x {
		dst[i] = Value(v, a, b)
	}
}

// Gradients sets w[i], dx[i], da[i] and db[i] to w(x[i]; a, b) and its
// derivatives by x, a and b. One of them may be x.
func Gradients(w, dx, da, db, x []float64, a, b float64) {
	for i, v := range x {
		w[i], dx[i], da[i], db[i] = Gradient(v, a, b)
	}
}
