package network

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/vecmath"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt/riemann"
)

// together is how many queries are computed at once: the results of a layer then stay in
// the cache.
const together = 64

// Context holds what the layers keep of the observations. It is immutable and safe for
// concurrent use.
type Context struct {
	model *Model
	x     blas64.General // the observed points, extended to the model's columns
	// By layer, then by head: keys, a column for each observation, and values, a row for
	// each.
	keys, values [][]blas64.General
}

// Observe returns the context of observations: points in the unit cube of at most Columns
// coordinates, at least one, and their outcomes, which must have mean 0 and variance 1 as
// in training. It panics if the sizes do not agree.
func (m *Model) Observe(x [][]float64, y []float64) *Context {
	if len(x) == 0 || len(x) != len(y) {
		panic(fmt.Sprintf("network: %d points and %d outcomes", len(x), len(y)))
	}
	c := &Context{model: m, x: m.extend(x)}
	tokens := m.embed(c.x)
	outcome := m.outcome.weight.Data
	for i, v := range y {
		row := tokens.Data[i*m.width:][:m.width]
		for j := range row {
			row[j] += v*outcome[j] + m.outcome.bias[j]
		}
	}
	distance := c.distance(c.x)
	for l := range m.blocks {
		b := &m.blocks[l]
		h := b.norm1.of(tokens)
		keys, values := b.key.of(h), b.value.of(h)
		var byHead, valuesByHead []blas64.General
		for head := range m.heads {
			byHead = append(byHead, transposed(m.part(keys, head)))
			valuesByHead = append(valuesByHead, m.part(values, head))
		}
		c.keys, c.values = append(c.keys, byHead), append(c.values, valuesByHead)
		if l < len(m.blocks)-1 { // nothing reads what the last layer makes of observations
			c.layer(l, tokens, h, distance)
		}
	}
	return c
}

// Predict returns the distribution of the outcome at each point. It panics if a point has
// more coordinates than the model has columns.
func (c *Context) Predict(x [][]float64) []riemann.Distribution {
	all := make([]riemann.Distribution, len(x))
	linalg.Parallel(len(x), together, func(_, lo, hi int) {
		logits := c.logits(c.model.extend(x[lo:hi]))
		for i := range hi - lo {
			all[lo+i] = c.model.buckets.Of(logits.Data[i*logits.Stride:][:logits.Cols])
		}
	})
	return all
}

// logits returns the network's output for the rows of x.
func (c *Context) logits(x blas64.General) blas64.General {
	m := c.model
	tokens, distance := m.embed(x), c.distance(x)
	for l := range m.blocks {
		c.layer(l, tokens, m.blocks[l].norm1.of(tokens), distance)
	}
	return m.head.of(m.norm.of(tokens))
}

// layer applies a layer to tokens, given their normalised form and their distances to the
// observations.
func (c *Context) layer(l int, tokens, normalised, distance blas64.General) {
	m, b := c.model, &c.model.blocks[l]
	queries, attended := b.query.of(normalised), matrix(tokens.Rows, m.width)
	for head := range m.heads {
		score := matrix(tokens.Rows, c.x.Rows)
		linalg.AddProduct(score, m.part(queries, head), c.keys[l][head])
		softmax(score, distance, 1/math.Sqrt(float64(m.width/m.heads)), b.near[head])
		linalg.AddProduct(m.part(attended, head), score, c.values[l][head])
	}
	add(tokens, b.out.of(attended))
	hidden := b.up.of(b.norm2.of(tokens))
	gelu(hidden.Data)
	add(tokens, b.down.of(hidden))
}

// extend returns the points as rows, with ½ for the columns that they lack.
func (m *Model) extend(x [][]float64) blas64.General {
	rows := matrix(len(x), m.columns)
	for i, p := range x {
		if len(p) > m.columns {
			panic(fmt.Sprintf("network: a point of %d coordinates, the model has %d columns", len(p), m.columns))
		}
		row := rows.Data[i*m.columns:][:m.columns]
		for j := copy(row, p); j < len(row); j++ {
			row[j] = 0.5
		}
	}
	return rows
}

// embed returns the tokens of the rows of x.
func (m *Model) embed(x blas64.General) blas64.General {
	centred := matrix(x.Rows, x.Cols)
	for i, v := range x.Data {
		centred.Data[i] = (v - 0.5) * math.Sqrt(12)
	}
	h := m.point1.of(centred)
	gelu(h.Data)
	return m.point2.of(h)
}

// distance returns the squared distances from the rows of x to the observations.
func (c *Context) distance(x blas64.General) blas64.General {
	d := matrix(x.Rows, c.x.Rows)
	for i := range x.Rows {
		a := x.Data[i*x.Stride:][:x.Cols]
		for j := range c.x.Rows {
			sum := 0.0
			for k, v := range c.x.Data[j*c.x.Stride:][:x.Cols] {
				sum = math.FMA(a[k]-v, a[k]-v, sum)
			}
			d.Data[i*d.Stride+j] = sum
		}
	}
	return d
}

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

// of returns the layer's output for the rows of x.
func (l linear) of(x blas64.General) blas64.General {
	out := matrix(x.Rows, len(l.bias))
	for i := range x.Rows {
		copy(out.Data[i*out.Stride:], l.bias)
	}
	linalg.AddProduct(out, x, l.weight)
	return out
}

// epsilon is added to variances, as PyTorch's LayerNorm does.
const epsilon = 1e-5

// of returns the normalised rows of x.
func (n norm) of(x blas64.General) blas64.General {
	out := matrix(x.Rows, x.Cols)
	for i := range x.Rows {
		row, to := x.Data[i*x.Stride:][:x.Cols], out.Data[i*out.Stride:][:x.Cols]
		mean, square := 0.0, 0.0
		for _, v := range row {
			mean += v
		}
		mean /= float64(len(row))
		for _, v := range row {
			square += (v - mean) * (v - mean)
		}
		factor := 1 / math.Sqrt(square/float64(len(row))+epsilon)
		for j, v := range row {
			to[j] = (v-mean)*factor*n.scale[j] + n.shift[j]
		}
	}
	return out
}

// softmax replaces the rows of a, times scale and less near times the distances, by their
// softmax.
func softmax(a, distance blas64.General, scale, near float64) {
	for i := range a.Rows {
		row, far := a.Data[i*a.Stride:][:a.Cols], distance.Data[i*distance.Stride:][:a.Cols]
		largest := math.Inf(-1)
		for j, v := range row {
			row[j] = v*scale - near*far[j]
			largest = max(largest, row[j])
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
	}
}

// gelu applies the Gaussian error linear unit.
func gelu(v []float64) {
	for i, x := range v {
		v[i] = x * math.Erfc(-x/math.Sqrt2) / 2
	}
}

// add adds b to a, which have the same size and no gaps between rows.
func add(a, b blas64.General) {
	for i, v := range b.Data {
		a.Data[i] += v
	}
}
