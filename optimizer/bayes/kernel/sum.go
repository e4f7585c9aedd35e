package kernel

import (
	"fmt"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// NewSum returns the sum of at least one kernel. All MUST have been made with the same
// columns, and at most one have functions (NewFeatures); the first transforms the points. The
// hyperparameters are those of the terms, concatenated.
func NewSum(terms ...*Kernel) *Kernel {
	if len(terms) == 0 {
		panic("kernel: a sum of no kernels")
	}
	s := &sum{}
	var drift *features
	for _, t := range terms {
		if t.Dim() != terms[0].Dim() {
			panic(fmt.Sprintf("kernel: a sum of kernels over %d and %d columns", terms[0].Dim(), t.Dim()))
		}
		s.terms = append(s.terms, t.of)
		s.starts = append(s.starts, s.size)
		s.size += t.NumParams()
		s.rows = max(s.rows, t.of.scratch())
		if inner, ok := t.of.(wide); ok {
			s.widest = max(s.widest, inner.width())
		}
		switch {
		case drift == nil:
			drift = t.drift
		case t.drift != nil:
			panic("kernel: a sum of two kernels of functions")
		}
	}
	return &Kernel{layout: terms[0].layout, of: s, drift: drift}
}

type sum struct {
	terms  []covariance
	starts []int // of each term's hyperparameters
	size   int   // hyperparameters
	rows   int   // of the terms' working memory
	widest int   // columns that a term sees
}

// width implements wide.
func (k *sum) width() int { return k.widest }

// own returns the i-th term's part of v, which has one value a hyperparameter.
func (k *sum) own(i int, v []float64) []float64 {
	return v[k.starts[i] : k.starts[i]+k.terms[i].params()]
}

func (k *sum) params() int { return k.size }

func (k *sum) scratch() int { return k.rows + 1 }

func (k *sum) prepare(theta []float64, x *mat.Dense, slopes bool) prepared {
	all := make([]prepared, len(k.terms))
	for i, t := range k.terms {
		all[i] = t.prepare(k.own(i, theta), x, slopes)
	}
	return all
}

func (k *sum) row(dst []float64, scratch [][]float64, x prepared, i int, y prepared, from int) {
	px, py, more := x.([]prepared), y.([]prepared), scratch[k.rows][:len(dst)]
	k.terms[0].row(dst, scratch, px[0], i, py[0], from)
	for t := 1; t < len(k.terms); t++ {
		k.terms[t].row(more, scratch, px[t], i, py[t], from)
		floats.Add(dst, more)
	}
}

func (k *sum) diag(dst []float64, x prepared) {
	k.total(dst, x, func(t covariance, dst []float64, p prepared) { t.diag(dst, p) })
}

// total sets dst to the sum of what set sets for each term.
func (k *sum) total(dst []float64, x prepared, set func(t covariance, dst []float64, p prepared)) {
	more := make([]float64, len(dst))
	clear(dst)
	for t, p := range x.([]prepared) {
		set(k.terms[t], more, p)
		floats.Add(dst, more)
	}
}

func (k *sum) gradientRow(sums, point []float64, scratch [][]float64, x prepared, i int, y prepared, weights []float64) {
	px, py, more := x.([]prepared), y.([]prepared), scratch[k.rows][:len(point)]
	k.terms[0].gradientRow(k.own(0, sums), point, scratch, px[0], i, py[0], weights)
	for t := 1; t < len(k.terms); t++ {
		k.terms[t].gradientRow(k.own(t, sums), more, scratch, px[t], i, py[t], weights)
		floats.Add(point, more)
	}
}

func (k *sum) diagGradient(dst []float64, x prepared, i int) {
	k.total(dst, x, func(t covariance, dst []float64, p prepared) { t.diagGradient(dst, p, i) })
}
