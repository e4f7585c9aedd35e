package network

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt/mixture"
)

// together is how many queries are computed at once: the results of a layer then stay in
// the cache.
const together = 64

// Context holds what the layers keep of the observations. It is immutable and safe for
// concurrent use.
type Context struct {
	model  *Model
	layers []memory
}

// tokens are points on their way through the layers.
type tokens struct {
	x     blas64.General // the points, extended to the model's columns and centred
	state blas64.General
	fit   []float64
	left  []float64 // what the fit leaves of the outcomes; nil for queries
}

// Observe returns the context of observations: points in the unit cube of at most Columns
// coordinates, at least one, and their outcomes, which must have mean 0 and variance 1 as
// in training. It panics if the sizes do not agree.
func (m *Model) Observe(x [][]float64, y []float64) *Context {
	if len(x) == 0 || len(x) != len(y) {
		panic(fmt.Sprintf("network: %d points and %d outcomes", len(x), len(y)))
	}
	c := &Context{model: m}
	t := m.embed(m.extend(x))
	outcome := m.outcome.weight.Data
	for i, v := range y {
		row := t.state.Data[i*m.width:][:m.width]
		for j := range row {
			row[j] += v*outcome[j] + m.outcome.bias[j]
		}
	}
	t.left = make([]float64, len(y))
	for l := range m.blocks {
		for i, v := range y {
			t.left[i] = v - t.fit[i]
		}
		h := m.blocks[l].norm1.of(t.state)
		c.layers = append(c.layers, m.remember(&m.blocks[l], t, h))
		if l < len(m.blocks)-1 { // nothing reads what the last layer makes of observations
			c.layer(l, t, h)
		}
	}
	return c
}

// Predict returns the distribution of the outcome at each point. It panics if a point has
// more coordinates than the model has columns.
func (c *Context) Predict(x [][]float64) []mixture.Distribution {
	all := make([]mixture.Distribution, len(x))
	linalg.Parallel(len(x), together, func(_, lo, hi int) {
		fit, output := c.outputs(c.model.extend(x[lo:hi]))
		for i := range hi - lo {
			all[lo+i] = distribution(fit[i], output.Data[i*output.Stride:][:output.Cols])
		}
	})
	return all
}

// outputs returns the fits at the rows of x and what the network's last layer says.
func (c *Context) outputs(x blas64.General) (fit []float64, output blas64.General) {
	m := c.model
	t := m.embed(x)
	for l := range m.blocks {
		c.layer(l, t, m.blocks[l].norm1.of(t.state))
	}
	return t.fit, m.head.of(m.norm.of(t.state))
}

// distribution reads one output: the logarithm of a scale, then logits, offsets from the fit
// and logarithms of standard deviations, the latter two in units of the scale.
func distribution(fit float64, output []float64) mixture.Distribution {
	n := (len(output) - 1) / 3
	logits, offset, width := output[1:1+n], output[1+n:1+2*n], output[1+2*n:]
	scale := math.Exp(output[0])
	mean, sd := make([]float64, n), make([]float64, n)
	for k := range n {
		mean[k], sd[k] = fit+scale*offset[k], scale*math.Exp(width[k])
	}
	return mixture.New(logits, mean, sd)
}

// layer applies a layer to tokens, given their normalised state.
func (c *Context) layer(l int, t *tokens, normalised blas64.General) {
	b := &c.model.blocks[l]
	attended, seen := c.attend(l, t, normalised)
	add(t.state, b.out.of(attended))
	add(t.state, b.seen.of(seen))
	hidden := b.up.of(b.norm2.of(t.state))
	gelu(hidden.Data)
	add(t.state, b.down.of(hidden))
}

// extend returns the points as rows, with ½ for the columns that they lack, and centred.
func (m *Model) extend(x [][]float64) blas64.General {
	rows := matrix(len(x), m.columns)
	for i, p := range x {
		if len(p) > m.columns {
			panic(fmt.Sprintf("network: a point of %d coordinates, the model has %d columns", len(p), m.columns))
		}
		for j, v := range p {
			rows.Data[i*m.columns+j] = v - 0.5
		}
	}
	return rows
}

// embed returns the tokens of the rows of x.
func (m *Model) embed(x blas64.General) *tokens {
	scaled := matrix(x.Rows, x.Cols)
	for i, v := range x.Data {
		scaled.Data[i] = v * math.Sqrt(12)
	}
	h := m.point1.of(scaled)
	gelu(h.Data)
	return &tokens{x: x, state: m.point2.of(h), fit: make([]float64, x.Rows)}
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
