package kernel

import (
	"sync"

	"gonum.org/v1/gonum/mat"
)

// workspace is the memory that one goroutine needs for rows of pairs.
type workspace struct {
	row     []float64   // as long as a padded row, and no shorter than a point
	scratch [][]float64 // as many more as the covariance asks for
	weights []float64   // of symmetricRows
}

// wide is a covariance that sees more columns of a point than there are.
type wide interface{ width() int }

// newWorkspaces returns a pool of workspaces for rows of n points.
func (k *Kernel) newWorkspaces(n int) *sync.Pool {
	width, rows := max(padded(n), k.Dim()), k.of.scratch()
	if inner, ok := k.of.(wide); ok {
		width = max(width, inner.width())
	}
	return &sync.Pool{New: func() any {
		memory := make([]float64, (rows+1)*width)
		work := &workspace{row: memory[:width]}
		for i := 1; i <= rows; i++ {
			work.scratch = append(work.scratch, memory[i*width:(i+1)*width])
		}
		return work
	}}
}

// symmetricRows returns rows lo … hi−1 of w, padded with zeros, and the distance
// between them, which keeps them in different cache sets. They are valid until the next
// call.
func (s *workspace) symmetricRows(w *mat.SymDense, lo, hi int) (rows []float64, stride int) {
	raw := w.RawSymmetric() // the upper triangle
	n := raw.N
	stride = padded(n) + padding/2
	if s.weights == nil {
		s.weights = make([]float64, rowGrain*stride) // nothing writes to the zeros at the ends
	}
	for j := range hi {
		from := max(j, lo)
		at := (from-lo)*stride + j
		for _, v := range raw.Data[j*raw.Stride+from : j*raw.Stride+hi] {
			s.weights[at] = v
			at += stride
		}
	}
	for i := lo; i < hi; i++ {
		copy(s.weights[(i-lo)*stride+i:], raw.Data[i*raw.Stride+i:i*raw.Stride+n])
	}
	return s.weights, stride
}
