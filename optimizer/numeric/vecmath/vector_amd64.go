package vecmath

import (
	"math"

	"golang.org/x/sys/cpu"
)

// lanes is how many elements a vector register holds.
const lanes = 4

// expVector is exp for the first elements, as many as fill whole vectors, and returns
// their number. That is 0 if the processor has no vectors of four.
func expVector(dst, x []float64) int {
	n := len(x) / lanes * lanes
	if n == 0 || !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return 0
	}
	_ = dst[n-1]
	expAVX2(&dst[0], &x[0], n, &expTable)
	return n
}

// logVector is log for the first elements, up to the first vector with an element that
// is not a positive normal number. It returns how many elements it has set.
func logVector(dst, x []float64) int {
	n := len(x) / lanes * lanes
	if n == 0 || !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return 0
	}
	_ = dst[n-1]
	return logAVX2(&dst[0], &x[0], n, &logTable)
}

// expAVX2 is exp for n elements, a positive multiple of lanes.
//
//go:noescape
func expAVX2(dst, x *float64, n int, table *[18][lanes]float64)

// logAVX2 is log for n elements, a positive multiple of lanes; it stops early as
// described at logVector.
//
//go:noescape
func logAVX2(dst, x *float64, n int, table *[18][lanes]float64) int

// The constants of the assembly, in each lane. They are never changed.
var (
	expTable = [18][lanes]float64{
		all(exp0), all(exp1), all(exp2), all(exp3), all(exp4), all(exp5), all(exp6), all(exp7), all(exp8), all(exp9), all(exp10),
		all(expMax), all(expMin), all(log2E), all(expShift), all(ln2Hi), all(ln2Lo), all(1),
	}
	logTable = [18][lanes]float64{
		all(log0), all(log1), all(log2), all(log3), all(log4), all(log5), all(log6),
		all(minNormal), all(math.MaxFloat64), all(math.Float64frombits(logOffset)),
		all(0x1p52), all(0x1p52 + 1023), all(ln2Hi), all(ln2Lo), all(0.5), all(1), all(2),
	}
)

func all(v float64) [lanes]float64 { return [lanes]float64{v, v, v, v} }
