package gp

import (
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
)

// Candidates are processed in blocks: small enough that n rows of one stay in the cache
// and that all cores have work, large enough to be matrix products.
const (
	smallestBlock = 8
	largestBlock  = 64
	manyBlocks    = 4
)

// blockSize returns the number of candidates in a block, of m in all.
func blockSize(m int) int {
	share := linalg.Chunks(m, manyBlocks*smallestBlock) * smallestBlock
	return min(share, largestBlock)
}

// Candidates are points whose part of the posterior is cached: after a point is added
// to the fantasies, their posterior costs O(n) a candidate instead of O(n²). It is not
// safe for concurrent use.
type Candidates struct {
	fantasies *Fantasies
	x         *mat.Dense // m×d, transformed
	blocks    []candidateBlock
	mean      []float64
	prior     []float64 // variances
	explained []float64 // parts of the prior variances, without the fantasies
}

// candidateBlock holds L⁻¹k(X, candidates) for a range of candidates.
type candidateBlock struct {
	points *kernel.Points
	width  int
	data   blas64.General // n×w, w filled up by linalg.NewColumns
	more   [][]float64    // a row for each fantasy
}

// Candidates returns the rows of x as candidates, ready for Posterior.
func (f *Fantasies) Candidates(x mat.Matrix) *Candidates {
	m := f.model
	c := &Candidates{fantasies: f, x: m.kernel.Transform(x)}
	rows, d := c.x.Dims()
	c.mean, c.prior, c.explained = make([]float64, rows), make([]float64, rows), make([]float64, rows)
	c.blocks = make([]candidateBlock, linalg.Chunks(rows, blockSize(rows)))
	linalg.Parallel(rows, blockSize(rows), func(chunk, lo, hi int) {
		b := &c.blocks[chunk]
		b.width = hi - lo
		b.points = m.kernel.Prepare(m.hyper.Kernel, c.x.Slice(lo, hi, 0, d).(*mat.Dense), false)
		b.data = linalg.NewColumns(m.Len(), hi-lo)
		m.points.Cross(firstColumns(b.data, b.width), b.points)
		b.points.Diag(c.prior[lo:hi])
		m.factor.SolveL(b.data)
		linalg.AddRows(c.mean[lo:hi], m.beta, b.data)
		linalg.AddSquares(c.explained[lo:hi], b.data)
		b.points.AddDrift(c.mean[lo:hi])
	})
	return c
}

// firstColumns returns a view of the first n columns of m.
func firstColumns(m blas64.General, n int) *mat.Dense {
	m.Cols = n
	var view mat.Dense
	view.SetRawMatrix(m)
	return &view
}

// Posterior returns the posterior at the candidates, as Fantasies.Posterior
// does, given all points that the fantasies hold now.
func (c *Candidates) Posterior() (mean, variance []float64) {
	f, rows := c.fantasies, len(c.mean)
	variance = make([]float64, rows)
	linalg.Parallel(rows, blockSize(rows), func(chunk, lo, hi int) {
		b := &c.blocks[chunk]
		for _, p := range f.points[len(b.more):] {
			b.extend(f.model, p)
		}
		b.variances(variance[lo:hi], c.prior[lo:hi], c.explained[lo:hi])
	})
	return slices.Clone(c.mean), variance
}

// extend adds the block's row for the next fantasy p.
func (b *candidateBlock) extend(m *Model, p fantasy) {
	row := make([]float64, b.width)
	p.points.Cross(mat.NewDense(1, len(row), row), b.points)
	// The covariance minus what is explained, with its sign flipped temporarily.
	floats.Scale(-1, row)
	n := m.Len()
	linalg.AddRows(row, p.row[:n], b.data)
	for i, earlier := range b.more {
		floats.AddScaled(row, p.row[n+i], earlier)
	}
	floats.Scale(-1/p.diag, row)
	b.more = append(b.more, row)
}

// variances sets dst to the prior variances minus what the observations explain and
// minus the squares of the fantasies' rows.
func (b *candidateBlock) variances(dst, prior, explained []float64) {
	copy(dst, explained)
	for _, row := range b.more {
		addSquares(dst, row)
	}
	for j, v := range dst {
		dst[j] = max(prior[j]-v, minVariance(prior[j]))
	}
}

func addSquares(dst, v []float64) {
	v = v[:len(dst)]
	for j := range dst {
		dst[j] += v[j] * v[j]
	}
}
