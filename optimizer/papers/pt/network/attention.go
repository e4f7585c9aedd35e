package network

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/vecmath"
)

// memory is what a layer keeps of the observations.
type memory struct {
	heads []head
	left  blas64.General // a row for each observation: what the fit leaves of its outcome, and the square
}

// head is what a head of the attention keeps of the observations. Its score falls with the
// squared distance, at a rate for each column: Σ rate·(a−b)² = Σ rate·a² − Σ 2·a·rate·b + Σ rate·b².
type head struct {
	key    blas64.General // a column for each observation, divided by the square root of the head's size
	place  blas64.General // 2·rate·b, a column for each observation
	offset []float64      // Σ rate·b²
	rate   []float64
	value  blas64.General // a row for each observation
}

// The bounds on what is computed from observations.
const (
	largestRate = 12   // the logarithm of the largest rate
	floor       = 1e-8 // is added to squares before their logarithm is taken
	least       = 1e-3 // is added to the attention that an observation pays to the others
)

// remember returns what a layer keeps of the observations, given their normalised state.
func (m *Model) remember(b *block, t *tokens, normalised blas64.General) memory {
	keys, values, rates := b.key.of(normalised), b.value.of(normalised), b.near.of(columnMeans(normalised))
	kept := memory{left: matrix(t.x.Rows, 2)}
	for i, v := range t.left {
		kept.left.Data[2*i], kept.left.Data[2*i+1] = v, v*v
	}
	for k := range m.heads {
		h := head{key: transposed(m.part(keys, k)), value: m.part(values, k), place: matrix(m.columns, t.x.Rows)}
		for i := range h.key.Data {
			h.key.Data[i] /= math.Sqrt(float64(m.width / m.heads))
		}
		for _, v := range rates.Data[k*m.columns:][:m.columns] {
			h.rate = append(h.rate, math.Exp(min(v, largestRate)))
		}
		h.offset = h.offsets(t.x)
		for i := range t.x.Rows {
			for j, rate := range h.rate {
				h.place.Data[j*t.x.Rows+i] = 2 * rate * t.x.Data[i*t.x.Stride+j]
			}
		}
		kept.heads = append(kept.heads, h)
	}
	return kept
}

// offsets returns Σ rate·x² for the rows of x.
func (h *head) offsets(x blas64.General) []float64 {
	all := make([]float64, x.Rows)
	for i := range all {
		for j, rate := range h.rate {
			v := x.Data[i*x.Stride+j]
			all[i] += rate * v * v
		}
	}
	return all
}

// attend returns the weighted means of the observations' values, for each token, and what
// the layer sees beside them. It improves the fit.
//
// The latter is, in this order: the fit; by head, the mean of what the fit left of the outcomes,
// the logarithm of its mean square, and the density of the observations; and for observations
// what the fit left, its logarithm and, by head, that of the error of a prediction from others.
func (c *Context) attend(l int, t *tokens, normalised blas64.General) (attended, seen blas64.General) {
	m, b, kept := c.model, &c.model.blocks[l], &c.layers[l]
	queries, gates := b.query.of(normalised), b.gate.of(normalised)
	attended, seen = matrix(t.x.Rows, m.width), matrix(t.x.Rows, 4*m.heads+3)
	for k := range m.heads {
		h := &kept.heads[k]
		score, density := h.weights(m.part(queries, k), t.x)
		linalg.AddProduct(m.part(attended, k), score, h.value)
		means := matrix(t.x.Rows, 2)
		linalg.AddProduct(means, score, kept.left)
		for i := range t.x.Rows {
			mean, row := means.Data[2*i], seen.Data[i*seen.Stride:][:seen.Cols]
			row[1+k], row[1+m.heads+k], row[1+2*m.heads+k] = mean, math.Log(means.Data[2*i+1]+floor)/5, density[i]/5
			if t.left != nil {
				row[3+3*m.heads+k] = logarithm((t.left[i] - mean) / (1 - score.Data[i*score.Stride+i] + least))
			}
			t.fit[i] += gates.Data[i*gates.Stride+k] * mean
		}
	}
	for i, v := range t.fit {
		row := seen.Data[i*seen.Stride:][:seen.Cols]
		row[0] = v
		if t.left != nil {
			row[1+3*m.heads], row[2+3*m.heads] = t.left[i], logarithm(t.left[i])
		}
	}
	return attended, seen
}

// weights returns the softmax of the scores of the observations for each row, and the logarithm
// of what it is divided by.
func (h *head) weights(queries, x blas64.General) (score blas64.General, density []float64) {
	score = matrix(x.Rows, len(h.offset))
	density = h.offsets(x)
	for i, own := range density {
		for j, other := range h.offset {
			score.Data[i*score.Stride+j] = -own - other
		}
	}
	linalg.AddProduct(score, x, h.place)
	linalg.AddProduct(score, queries, h.key)
	for i := range x.Rows {
		density[i] = softmax(score.Data[i*score.Stride:][:score.Cols])
	}
	return score, density
}

// softmax replaces a row by its softmax, and returns the logarithm of the sum of exponentials.
func softmax(row []float64) float64 {
	largest := math.Inf(-1)
	for _, v := range row {
		largest = max(largest, v)
	}
	for j := range row {
		row[j] -= largest
	}
	vecmath.Exp(row, row)
	sum := 0.0
	for _, v := range row {
		sum += v
	}
	for j := range row {
		row[j] /= sum
	}
	return largest + math.Log(sum)
}

// logarithm returns that of the square of v, scaled as in training.
func logarithm(v float64) float64 { return math.Log(v*v+floor) / 5 }

// part returns the columns of one head.
func (m *Model) part(a blas64.General, head int) blas64.General {
	size := m.width / m.heads
	return blas64.General{Rows: a.Rows, Cols: size, Stride: a.Stride, Data: a.Data[head*size:]}
}

func transposed(a blas64.General) blas64.General {
	t := matrix(a.Cols, a.Rows)
	for i := range a.Rows {
		for j := range a.Cols {
			t.Data[j*t.Stride+i] = a.Data[i*a.Stride+j]
		}
	}
	return t
}

// columnMeans returns the mean of each column, as one row.
func columnMeans(a blas64.General) blas64.General {
	mean := matrix(1, a.Cols)
	for i := range a.Rows {
		for j := range a.Cols {
			mean.Data[j] += a.Data[i*a.Stride+j] / float64(a.Rows)
		}
	}
	return mean
}
