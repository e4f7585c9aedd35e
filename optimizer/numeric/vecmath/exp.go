package vecmath

import "math"

const (
	log2E = 1.44269504088896340735992468100189214
	// ln2Hi + ln2Lo is ln 2. Products of ln2Hi with integers of 11 bits are exact.
	ln2Hi = 0x1.62e42fefa38p-1
	ln2Lo = 0x1.ef35793c7673p-45

	// Adding expShift to a number below 2⁵¹ rounds it to an integer and leaves
	// that integer, plus twice the bias of the exponent, in the lowest bits.
	expShift = 0x1.8p52 + 2*1023
	// Beyond these, exp is infinite or rounds to zero.
	expMax = 710
	expMin = -746
)

// exp(r) = 1 + r + r²(exp0 + exp1·r + … + exp10·r¹⁰) for |r| ≤ ln(2)/2, with an error
// of 2e-19: Chebyshev's approximation, from testdata/coefficients.py.
const (
	exp0  = 0x1.0000000000000p-1
	exp1  = 0x1.5555555555557p-3
	exp2  = 0x1.5555555555556p-5
	exp3  = 0x1.11111111100dfp-7
	exp4  = 0x1.6c16c16c162d6p-10
	exp5  = 0x1.a01a01abe65c3p-13
	exp6  = 0x1.a01a01a6d79b0p-16
	exp7  = 0x1.71de0236c3217p-19
	exp8  = 0x1.27e4db6760171p-22
	exp9  = 0x1.af4ddeb6edd5ap-26
	exp10 = 0x1.1f72fd22159cdp-29
)

// Exp sets dst[i] to e**x[i] for each i. dst may be x; its length must be x's. The
// error is below 0.7 units in the last place (at most 0.64 at 6 million random
// arguments), and below 1 if the result is subnormal. Exp(+Inf) = +Inf, Exp(-Inf) = 0,
// Exp(NaN) = NaN; large results overflow to +Inf, small ones underflow to 0.
func Exp(dst, x []float64) {
	if len(dst) != len(x) {
		panic("vecmath: lengths differ")
	}
	done := expVector(dst, x)
	for i := done; i < len(x); i++ {
		dst[i] = exp(x[i])
	}
}

// exp returns e**x = 2ⁿ·exp(r), where x = n·ln 2 + r.
func exp(x float64) float64 {
	// A NaN passes both comparisons.
	if x > expMax {
		x = expMax
	}
	if x < expMin {
		x = expMin
	}
	shifted := math.FMA(x, log2E, expShift)
	n := shifted - expShift
	high := math.FMA(-n, ln2Hi, x) // exact
	r := math.FMA(-n, ln2Lo, high)
	low := math.FMA(-n, ln2Lo, high-r) // what r lacks

	q := math.FMA(r, exp10, exp9)
	q = math.FMA(r, q, exp8)
	q = math.FMA(r, q, exp7)
	q = math.FMA(r, q, exp6)
	q = math.FMA(r, q, exp5)
	q = math.FMA(r, q, exp4)
	q = math.FMA(r, q, exp3)
	q = math.FMA(r, q, exp2)
	q = math.FMA(r, q, exp1)
	q = math.FMA(r, q, exp0)

	sum := 1 + r
	low += r - (sum - 1)                           // what sum lacks
	p := sum + math.FMA(float64(r*r), q, low)      // float64: no other fusion
	bits := math.Float64bits(shifted)              // … + n + 2046
	half := bits >> 1                              // … + ⌊n/2⌋ + 1023
	a := math.Float64frombits(half << 52)          // 2^⌊n/2⌋
	b := math.Float64frombits((bits - half) << 52) // 2^⌈n/2⌉
	return p * a * b
}
