// Package warp implements the input warping of the Gaussian processes: the cumulative
// distribution function of Kumaraswamy's distribution, a monotone map of the unit
// interval to itself that can stretch either end or the middle (Snoek et al. 2014 with
// the Beta distribution; Cowen-Rivers et al. 2022).
//
// A coordinate x is first moved inside the interval, to u = ε + (1−2ε)·x with
// ε = Epsilon, and then
//
//	w(x; a, b) = 1 − (1 − u^a)^b
//
// for positive shapes a and b; with a = b = 1 it is u itself.
package warp

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/vecmath"
)

// Epsilon is the distance that coordinates keep from 0 and 1, where the slope of w can
// be infinite. HEBO's submission to the NeurIPS 2020 competition used the same value.
const Epsilon = 1e-6

// The shapes' prior and bounds as in HEBO: log a and log b are normal with mean
// LogShapeMean and standard deviation LogShapeSD, and shapes stay below MaxShape.
// MinShape bounds them away from 0, where w is a step.
const (
	LogShapeMean = 0
	LogShapeSD   = 0.75
	MinShape     = 1e-2
	MaxShape     = 10
)

// blockSize is how many elements are processed at a time, in memory on the stack.
const blockSize = 64

// block holds log u, u^a, q = 1 − u^a and log q of each element, and the arguments of
// the logarithms and exponentials.
type block struct {
	u, logU, t, q, logQ [blockSize]float64
	argument, rest      [blockSize]float64
}

// Values sets dst[i] to w(x[i]; a, b), with an error of a few units of 1e-16.
// dst may be x; its length must be x's.
func Values(dst, x []float64, a, b float64) {
	checkLength(len(dst), len(x))
	var p block
	for len(x) > 0 {
		n := min(len(x), blockSize)
		p.prepare(x[:n], a)
		power := p.power(n, b)
		for i := range power {
			dst[i] = 1 - power[i]
		}
		dst, x = dst[n:], x[n:]
	}
}

// Gradients sets w[i] as Values does, and dx[i], da[i] and db[i] to the derivatives by
// x, a and b. One of the results may be x; their lengths must be x's.
func Gradients(w, dx, da, db, x []float64, a, b float64) {
	for _, dst := range [...][]float64{w, dx, da, db} {
		checkLength(len(dst), len(x))
	}
	var p block
	for len(x) > 0 {
		n := min(len(x), blockSize)
		p.prepare(x[:n], a)
		for i, power := range p.power(n, b) {
			// ∂w/∂u = a·b·u^(a−1)·q^(b−1), ∂w/∂a = b·q^(b−1)·u^a·log u, ∂w/∂b = −q^b·log q
			common := b * power / p.q[i] * p.t[i]
			w[i] = 1 - power
			dx[i] = (1 - 2*Epsilon) * a * common / p.u[i]
			da[i] = common * p.logU[i]
			db[i] = -power * p.logQ[i]
		}
		w, dx, da, db, x = w[n:], dx[n:], da[n:], db[n:], x[n:]
	}
}

func checkLength(got, want int) {
	if got != want {
		panic(fmt.Sprintf("warp: %d results for %d coordinates", got, want))
	}
}

// prepare sets p for x, which has at most blockSize elements.
//
// Near 1, u and u^a have lost the digits of their distance from it, so that a difference q = 1 − u^a and
// its logarithm would have few that are right. So whatever is near 1 is kept with what rounding took. If
// 1−d is rounded to s, log(1−d) is log s + rest/s with rest = (1−s)−d, which is exact (a difference of two
// numbers within a factor of 2 is: Sterbenz). expm1(y) is (t−1)·y/log t with t = exp y as rounded (Kahan;
// see Higham, Accuracy and Stability of Numerical Algorithms, chapter 1).
func (p *block) prepare(x []float64, a float64) {
	n := len(x)
	for i, v := range x {
		v = min(max(v, 0), 1)
		u, rest := Epsilon+(1-2*Epsilon)*v, 0.0
		if v > 0.5 {
			d := Epsilon + (1-2*Epsilon)*(1-v)
			u = 1 - d
			rest = (1 - u) - d
		}
		p.u[i], p.rest[i] = u, rest/u
	}
	vecmath.Log(p.logU[:n], p.u[:n])
	for i := range n {
		p.logU[i] += p.rest[i]
		p.argument[i] = a * p.logU[i]
	}
	vecmath.Exp(p.t[:n], p.argument[:n])
	vecmath.Log(p.logQ[:n], p.t[:n])
	for i, t := range p.t[:n] {
		y, rounded := p.argument[i], p.logQ[i]
		q, rest := 1-t, 0.0
		switch {
		case t == 1:
			q = -y
		case t > 0.5:
			q *= y / rounded
		default:
			rest = ((1 - q) - t) / q
		}
		p.q[i], p.rest[i] = q, rest
	}
	vecmath.Log(p.logQ[:n], p.q[:n])
	for i := range n {
		p.logQ[i] += p.rest[i]
	}
}

// power returns q^b of the first n elements.
func (p *block) power(n int, b float64) []float64 {
	for i, l := range p.logQ[:n] {
		p.argument[i] = b * l
	}
	vecmath.Exp(p.argument[:n], p.argument[:n])
	return p.argument[:n]
}
