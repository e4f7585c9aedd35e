package vecmath

import "math"

const (
	// logOffset is the difference between the bits of 1 and those of √½: adding it to a
	// number's bits raises the exponent of numbers whose fraction is above √2.
	logOffset = 0x3ff0000000000000 - 0x3fe6a09e667f3bcd

	minNormal = 0x1p-1022
	// scaleUp makes subnormal numbers normal.
	scaleUp, scaleUpExponent = 0x1p54, 54
)

// log((1+s)/(1−s)) = 2s + s³(log0 + log1·s² + … + log6·s¹²) for |s| ≤ 0.1716, with an
// error of 2e-18: Chebyshev's approximation, from testdata/coefficients.py.
const (
	log0 = 0x1.5555555555558p-1
	log1 = 0x1.99999999952e1p-2
	log2 = 0x1.2492492df1681p-2
	log3 = 0x1.c71c62e558271p-3
	log4 = 0x1.7462b4b6890a4p-3
	log5 = 0x1.39fe5eebedbc8p-3
	log6 = 0x1.2b585ce671c95p-3
)

// Log sets dst[i] to the natural logarithm of x[i] for each i. dst may be x; its length
// must be x's. The error is below 0.8 units in the last place (at most 0.74 at 6
// million random arguments). Log(+Inf) = +Inf and Log(±0) = -Inf; the logarithm of a
// negative number or of NaN is NaN.
func Log(dst, x []float64) {
	if len(dst) != len(x) {
		panic("vecmath: lengths differ")
	}
	for i := 0; i < len(x); {
		// It stops at the first number that is not positive and normal, and before the
		// end.
		i += logVector(dst[i:], x[i:])
		for end := min(i+4, len(x)); i < end; i++ {
			dst[i] = log(x[i])
		}
	}
}

// log returns the natural logarithm of x.
func log(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case x < minNormal:
		return logOf(float64(x*scaleUp), 1023+scaleUpExponent)
	}
	return logOf(x, 1023)
}

// logOf returns log x − (bias−1023)·log 2 for positive normal x = 2ᵏ·(1+f), √½ ≤
// 1+f < √2. With s = f/(2+f), log(1+f) = log((1+s)/(1−s)) = f − f²/2 +
// s(f²/2 + s²·(log0 + log1·s² + …)), as in FreeBSD's e_log.c.
func logOf(x, bias float64) float64 {
	bits := math.Float64bits(x)
	biased := (bits + logOffset) >> 52
	f := math.Float64frombits(bits-biased<<52+1023<<52) - 1
	k := float64(biased) - bias

	s := f / (2 + f)
	z := s * s
	q := math.FMA(z, log6, log5)
	q = math.FMA(z, q, log4)
	q = math.FMA(z, q, log3)
	q = math.FMA(z, q, log2)
	q = math.FMA(z, q, log1)
	q = math.FMA(z, q, log0)
	half := 0.5 * f
	q = math.FMA(z, q, float64(half*f))

	whole := float64(k * ln2Hi) // exact
	high := whole + f
	low := f - (high - whole) // what high lacks
	low = math.FMA(k, ln2Lo, low)
	low = math.FMA(s, q, low)
	return high + math.FMA(-half, f, low)
}
