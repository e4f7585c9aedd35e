// Package network computes what a probabilistic transformer predicts: the distribution of
// outcomes at query points, given observations. It reads the weights that the scripts in
// ../train write and repeats their network in float64.
//
// The network differs from the paper's in three ways:
//
//   - The prediction is a mixture of eight normal distributions. The paper has a histogram of 100
//     buckets, whose width limits how precisely a search can tell good points apart.
//   - Attention prefers near evaluations. How fast it falls with the distance depends on the
//     column and on the evaluations.
//   - Each layer improves a fit to the outcomes: it adds a weighted mean of the errors that the fit
//     still has. The mixture lies around the last layer's fit. So a small network is precise where
//     evaluations without noise are dense.
//
// As in the paper, a penalty keeps predictions of neighbours similar. Its weight is 0.01, because
// larger weights cost accuracy.
package network

import (
	"fmt"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt/mixture"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt/safetensors"
)

// The bounds on a network.
const (
	maxColumns = 64
	maxWidth   = 1024
	maxLayers  = 32
	maxHeads   = 64
)

// Model is a trained transformer. It is immutable and safe for concurrent use.
type Model struct {
	columns, least, most int
	width, heads         int

	point1, point2, outcome linear
	blocks                  []block
	norm                    norm
	head                    linear
}

// block is a layer: attention to the observations, then a small network for each token.
type block struct {
	norm1, norm2      norm
	query, key, value linear
	out, up, down     linear
	// near gives the logarithm of how fast attention falls with the squared distance, by head
	// and column; gate, by head, how much of what a mean predicts is added to the fit; seen is
	// for what the layer sees beside the tokens.
	near, gate, seen linear
}

// linear maps each row x to x·weight + bias.
type linear struct {
	weight blas64.General // inputs×outputs
	bias   []float64
}

// norm is a layer normalisation.
type norm struct{ scale, shift []float64 }

// Columns returns the number of coordinates of a point. Points of fewer coordinates are
// extended by ½.
func (m *Model) Columns() int { return m.columns }

// LeastColumns returns the least number of coordinates that differed in training.
func (m *Model) LeastColumns() int { return m.least }

// MostObservations returns the largest number of observations in training.
func (m *Model) MostObservations() int { return m.most }

// Load reads a model from the bytes of a safetensors file that train.py or shrink.py wrote.
func Load(data []byte) (*Model, error) {
	m, err := load(data)
	if err != nil {
		return nil, fmt.Errorf("load a transformer: %w", err)
	}
	return m, nil
}

func load(data []byte) (*Model, error) {
	f, err := safetensors.Read(data)
	if err != nil {
		return nil, err
	}
	r := reader{file: f}
	m := &Model{
		heads: r.number("heads", 1, maxHeads),
		least: r.number("least_columns", 1, maxColumns),
		most:  r.number("most_observations", 1, 1<<20),
	}
	m.width, m.columns = r.size("point1.weight", 0, maxWidth), r.size("point1.weight", 1, maxColumns)
	hidden, outputs := r.size("blocks.0.up.bias", 0, 4*maxWidth), r.size("head.bias", 0, 3*mixture.MaxComponents+1)
	if r.err != nil {
		return nil, r.err
	}
	if m.width%m.heads != 0 || m.least > m.columns {
		return nil, fmt.Errorf("width %d, %d heads, %d of %d columns: want a multiple of the heads, and no more columns than there are",
			m.width, m.heads, m.least, m.columns)
	}
	if outputs%3 != 1 || outputs < 4 {
		return nil, fmt.Errorf("%d outputs, want a scale and three for each component", outputs)
	}
	m.point1, m.point2 = r.linear("point1", m.columns, m.width), r.linear("point2", m.width, m.width)
	m.outcome = r.linear("outcome", 1, m.width)
	for i := 0; i < maxLayers; i++ {
		name := fmt.Sprintf("blocks.%d.", i)
		if _, more := f.Tensors[name+"near.bias"]; !more {
			break
		}
		m.blocks = append(m.blocks, r.block(name, m, hidden))
	}
	m.norm, m.head = r.norm("norm", m.width), r.linear("head", m.width, outputs)
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// reader reads tensors until the first error.
type reader struct {
	file *safetensors.File
	err  error
}

// number returns a number of the metadata.
func (r *reader) number(name string, low, high int) int {
	n, err := strconv.Atoi(r.file.Metadata[name])
	if (err != nil || n < low || n > high) && r.err == nil {
		r.err = fmt.Errorf("%s is %q, want an integer from %d to %d", name, r.file.Metadata[name], low, high)
	}
	return n
}

// size returns the length of a dimension of a tensor.
func (r *reader) size(name string, dimension, limit int) int {
	shape := r.file.Tensors[name].Shape
	if (dimension >= len(shape) || shape[dimension] > limit) && r.err == nil {
		r.err = fmt.Errorf("tensor %s has the shape %v, want more than %d dimensions of at most %d", name, shape, dimension, limit)
	}
	if r.err != nil {
		return 1
	}
	return shape[dimension]
}

// tensor returns the elements of a tensor of the given shape.
func (r *reader) tensor(name string, shape ...int) []float64 {
	t := r.file.Tensors[name]
	if fmt.Sprint(t.Shape) != fmt.Sprint(shape) && r.err == nil {
		r.err = fmt.Errorf("tensor %s has the shape %v, want %v", name, t.Shape, shape)
	}
	return t.Data
}

// linear reads the weights of PyTorch's Linear, which are outputs×inputs.
func (r *reader) linear(name string, inputs, outputs int) linear {
	w, bias := r.tensor(name+".weight", outputs, inputs), r.tensor(name+".bias", outputs)
	scale := r.scale(name+".weight", outputs)
	l := linear{bias: bias}
	if r.err != nil {
		return l
	}
	l.weight = matrix(inputs, outputs)
	for o := range outputs {
		for i := range inputs {
			l.weight.Data[i*outputs+o] = scale[o] * w[o*inputs+i]
		}
	}
	return l
}

// scale returns what the rows of a matrix are to be multiplied by: 1, unless it has 8 bits.
func (r *reader) scale(name string, rows int) []float64 {
	if r.file.Tensors[name].Type == "I8" {
		return r.tensor(name+".scale", rows)
	}
	return slices.Repeat([]float64{1}, rows)
}

func (r *reader) norm(name string, width int) norm {
	return norm{r.tensor(name+".weight", width), r.tensor(name+".bias", width)}
}

func (r *reader) block(name string, m *Model, hidden int) block {
	square := func(part string) linear { return r.linear(name+part, m.width, m.width) }
	return block{
		norm1: r.norm(name+"norm1", m.width), norm2: r.norm(name+"norm2", m.width),
		query: square("query"), key: square("key"), value: square("value"), out: square("out"),
		up: r.linear(name+"up", m.width, hidden), down: r.linear(name+"down", hidden, m.width),
		near: r.linear(name+"near", m.width, m.heads*m.columns), gate: r.linear(name+"gate", m.width, m.heads),
		seen: r.linear(name+"seen", 4*m.heads+3, m.width),
	}
}

// matrix returns a matrix of zeros.
func matrix(rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float64, rows*cols)}
}
