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

// workspaces gives goroutines workspaces for rows of n points, and reuses returned
// ones.
type workspaces struct {
	rows, width int
	mutex       sync.Mutex
	free        []*workspace
}

// wide is a covariance that sees more columns of a point than there are.
type wide interface{ width() int }

func (k *Kernel) newWorkspaces(n int) *workspaces {
	width := max(padded(n), k.Dim())
	if inner, ok := k.of.(wide); ok {
		width = max(width, inner.width())
	}
	return &workspaces{rows: k.of.scratch(), width: width}
}

func (w *workspaces) takeWorkspace() *workspace {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if last := len(w.free) - 1; last >= 0 {
		work := w.free[last]
		w.free = w.free[:last]
		return work
	}
	memory := make([]float64, (w.rows+1)*w.width)
	work := &workspace{row: memory[:w.width]}
	for i := 1; i <= w.rows; i++ {
		work.scratch = append(work.scratch, memory[i*w.width:(i+1)*w.width])
	}
	return work
}

func (w *workspaces) give(work *workspace) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.free = append(w.free, work)
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
