package kernel

import (
	"fmt"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
)

// rowGrain is the number of rows that a goroutine takes at a time: enough work to
// outweigh the hand-over, and few enough to balance triangular loops.
const rowGrain = 16

// Points are points that Kernel.Prepare returned, with their kernel and
// hyperparameters. They are immutable and safe for concurrent use. Points of different
// kernels or hyperparameters MUST NOT be combined.
type Points struct {
	kernel *Kernel
	n      int
	slopes bool
	of     prepared
}

// Gram sets dst to k(p_i, p_j).
func (p *Points) Gram(dst *mat.SymDense) {
	k, n, raw := p.kernel, p.n, dst.RawSymmetric()
	if raw.N != n {
		panic(fmt.Sprintf("kernel: Gram of %d points into a matrix of %d rows", n, raw.N))
	}
	spaces := k.newWorkspaces(n)
	linalg.Parallel(n, rowGrain, func(_, lo, hi int) {
		work := spaces.Get().(*workspace)
		defer spaces.Put(work)
		for i := lo; i < hi; i++ {
			k.wholeVectors(raw.Data[i*raw.Stride+i:i*raw.Stride+n], work, p.of, i, p.of, i)
		}
	})
}

// Cross sets dst to k(p_i, y_j).
func (p *Points) Cross(dst *mat.Dense, y *Points) {
	if r, c := dst.Dims(); r != p.n || c != y.n {
		panic(fmt.Sprintf("kernel: Cross of %d and %d points into %d×%d", p.n, y.n, r, c))
	}
	p.check(y)
	k, raw := p.kernel, dst.RawMatrix()
	spaces := k.newWorkspaces(y.n)
	linalg.Parallel(p.n, rowGrain, func(_, lo, hi int) {
		work := spaces.Get().(*workspace)
		defer spaces.Put(work)
		for i := lo; i < hi; i++ {
			k.wholeVectors(raw.Data[i*raw.Stride:i*raw.Stride+y.n], work, p.of, i, y.of, 0)
		}
	})
}

// wholeVectors is the covariance's row, extended at both ends to whole vectors of four:
// the elements of a partial vector would be computed one by one. What is computed beyond the end is of
// the zeros that pad a table, and is thrown away; before the start it is of other points.
func (k *Kernel) wholeVectors(dst []float64, work *workspace, x prepared, i int, y prepared, from int) {
	start, end := from/4*4, (from+len(dst)+3)/4*4
	if end-start == len(dst) {
		k.of.row(dst, work.scratch, x, i, y, from)
		return
	}
	whole := work.row[:end-start]
	k.of.row(whole, work.scratch, x, i, y, start)
	copy(dst, whole[from-start:])
}

// Diag sets dst[i] to k(p_i, p_i).
func (p *Points) Diag(dst []float64) {
	if len(dst) != p.n {
		panic(fmt.Sprintf("kernel: diagonal of %d points into %d values", p.n, len(dst)))
	}
	p.kernel.of.diag(dst, p.of)
}

func (p *Points) check(other *Points) {
	if p.kernel != other.kernel {
		panic("kernel: points of different kernels")
	}
}

func (p *Points) checkSlopes() {
	if !p.slopes {
		panic("kernel: gradients of points prepared without slopes")
	}
}

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
