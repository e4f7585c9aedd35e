package kernel

import (
	"fmt"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Sum is the sum of kernels over the same columns. Its hyperparameters are its
// terms', one after the other.
type Sum struct{ terms []Kernel }

var _ Kernel = (*Sum)(nil)

// NewSum returns the sum of at least one kernel. All must have been made with
// the same columns: points are transformed by the first.
func NewSum(terms ...Kernel) *Sum {
	if len(terms) == 0 {
		panic("kernel: a sum of nothing")
	}
	for _, t := range terms {
		if t.Dim() != terms[0].Dim() {
			panic(fmt.Sprintf("kernel: a sum of kernels over %d and %d columns", terms[0].Dim(), t.Dim()))
		}
	}
	return &Sum{append([]Kernel(nil), terms...)}
}

// Dim implements Kernel.
func (k *Sum) Dim() int { return k.terms[0].Dim() }

// NumParams implements Kernel.
func (k *Sum) NumParams() (n int) {
	for _, t := range k.terms {
		n += t.NumParams()
	}
	return n
}

// Transform implements Kernel.
func (k *Sum) Transform(x mat.Matrix) *mat.Dense { return k.terms[0].Transform(x) }

// each calls f with each term and its place among the hyperparameters.
func (k *Sum) each(numParams int, f func(i int, term Kernel, lo, hi int)) {
	checkParams(numParams, k.NumParams())
	lo := 0
	for i, t := range k.terms {
		hi := lo + t.NumParams()
		f(i, t, lo, hi)
		lo = hi
	}
}

// Gram implements Kernel.
func (k *Sum) Gram(dst *mat.SymDense, theta []float64, x *mat.Dense) {
	n, _ := x.Dims()
	checkGram(dst, n)
	var more *mat.SymDense
	k.each(len(theta), func(i int, term Kernel, lo, hi int) {
		if i == 0 {
			term.Gram(dst, theta[lo:hi], x)
			return
		}
		if more == nil {
			more = mat.NewSymDense(n, nil)
		}
		term.Gram(more, theta[lo:hi], x)
		to, from := dst.RawSymmetric(), more.RawSymmetric()
		for r := range n {
			floats.Add(to.Data[r*to.Stride+r:r*to.Stride+n], from.Data[r*from.Stride+r:r*from.Stride+n])
		}
	})
}

// Cross implements Kernel.
func (k *Sum) Cross(dst *mat.Dense, theta []float64, x, y *mat.Dense) {
	checkCross(dst, x, y)
	k.addDense(dst, len(theta), func(to *mat.Dense, term Kernel, lo, hi int) { term.Cross(to, theta[lo:hi], x, y) })
}

// addDense sets dst to the sum of what f sets for each term.
func (k *Sum) addDense(dst *mat.Dense, numParams int, f func(to *mat.Dense, term Kernel, lo, hi int)) {
	var more *mat.Dense
	k.each(numParams, func(i int, term Kernel, lo, hi int) {
		if i == 0 {
			f(dst, term, lo, hi)
			return
		}
		if more == nil {
			more = mat.NewDense(dst.RawMatrix().Rows, dst.RawMatrix().Cols, nil)
		}
		f(more, term, lo, hi)
		dst.Add(dst, more)
	})
}

// addVector sets dst to the sum of what f sets for each term.
func (k *Sum) addVector(dst []float64, numParams int, f func(to []float64, term Kernel, lo, hi int)) {
	more := make([]float64, len(dst))
	k.each(numParams, func(i int, term Kernel, lo, hi int) {
		if i == 0 {
			f(dst, term, lo, hi)
			return
		}
		f(more, term, lo, hi)
		floats.Add(dst, more)
	})
}

// Diag implements Kernel.
func (k *Sum) Diag(dst []float64, theta []float64, x *mat.Dense) {
	k.addVector(dst, len(theta), func(to []float64, term Kernel, lo, hi int) { term.Diag(to, theta[lo:hi], x) })
}

// ParamGradient implements Kernel.
func (k *Sum) ParamGradient(dst []float64, theta []float64, x *mat.Dense, w *mat.SymDense) {
	k.gradients(dst, nil, theta, x, w)
}

// PairGradient implements Kernel.
func (k *Sum) PairGradient(dst *mat.Dense, theta []float64, x *mat.Dense, w *mat.SymDense) {
	k.gradients(nil, dst, theta, x, w)
}

func (k *Sum) gradients(params []float64, points *mat.Dense, theta []float64, x *mat.Dense, w *mat.SymDense) {
	checkGradients(k.NumParams(), params, points, x, w)
	mine := func(lo, hi int) []float64 {
		if params == nil {
			return nil
		}
		return params[lo:hi]
	}
	if points == nil {
		k.each(len(theta), func(_ int, term Kernel, lo, hi int) { gradients(term, mine(lo, hi), nil, theta[lo:hi], x, w) })
		return
	}
	k.addDense(points, len(theta), func(to *mat.Dense, term Kernel, lo, hi int) {
		gradients(term, mine(lo, hi), to, theta[lo:hi], x, w)
	})
}

// InputGradient implements Kernel.
func (k *Sum) InputGradient(dst *mat.Dense, theta []float64, x *mat.Dense, point []float64) {
	checkInputGradient(dst, x, point)
	k.addDense(dst, len(theta), func(to *mat.Dense, term Kernel, lo, hi int) { term.InputGradient(to, theta[lo:hi], x, point) })
}

// DiagGradient implements Kernel.
func (k *Sum) DiagGradient(dst []float64, theta []float64, point []float64) {
	k.addVector(dst, len(theta), func(to []float64, term Kernel, lo, hi int) { term.DiagGradient(to, theta[lo:hi], point) })
}
