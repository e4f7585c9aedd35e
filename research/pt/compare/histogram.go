package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt/safetensors"
)

// histogram is a transformer as the paper has it: plain attention to the observations, and a
// probability for each of 100 buckets. train/paper.py trains it and has the same network.
type histogram struct {
	columns, heads                int
	point1, point2, outcome, head affine
	norm                          normalisation
	layers                        []layer
	ends                          []float64 // of the buckets, ascending
}

// layer is plain attention, then a small network for each token.
type layer struct {
	norm1, norm2                     normalisation
	query, key, value, out, up, down affine
}

// affine maps the rows of a matrix.
type affine struct {
	weight *mat.Dense // outputs × inputs
	bias   []float64
}

// normalisation has the scale and the shift of a layer that normalises.
type normalisation struct{ scale, shift []float64 }

// loadHistogram reads what train/paper.py wrote.
func loadHistogram(data []byte) (*histogram, error) {
	f, err := safetensors.Read(data)
	if err != nil {
		return nil, err
	}
	h := &histogram{ends: f.Tensors["ends"].Data}
	if h.heads, err = strconv.Atoi(f.Metadata["heads"]); err != nil {
		return nil, fmt.Errorf("heads: %w", err)
	}
	var missing error
	linear := func(name string) affine {
		w, b := f.Tensors[name+".weight"], f.Tensors[name+".bias"]
		if len(w.Shape) != 2 || len(b.Data) != w.Shape[0] {
			missing = errors.Join(missing, fmt.Errorf("no weights %s of a transformer with buckets", name))
			return affine{}
		}
		return affine{mat.NewDense(w.Shape[0], w.Shape[1], w.Data), b.Data}
	}
	norm := func(name string) normalisation {
		return normalisation{f.Tensors[name+".weight"].Data, f.Tensors[name+".bias"].Data}
	}
	h.point1, h.point2, h.outcome, h.head, h.norm = linear("point1"), linear("point2"), linear("outcome"), linear("head"), norm("norm")
	for i := 0; ; i++ {
		name := fmt.Sprintf("blocks.%d.", i)
		if _, more := f.Tensors[name+"query.bias"]; !more {
			break
		}
		h.layers = append(h.layers, layer{
			norm(name + "norm1"), norm(name + "norm2"), linear(name + "query"), linear(name + "key"), linear(name + "value"), linear(name + "out"),
			linear(name + "up"), linear(name + "down"),
		})
	}
	if missing != nil {
		return nil, missing
	}
	if len(h.ends) != len(h.head.bias)+1 {
		return nil, fmt.Errorf("%d buckets and %d ends, want one end more", len(h.head.bias), len(h.ends))
	}
	_, h.columns = h.point1.weight.Dims()
	return h, nil
}

// of returns the map of the rows of x.
func (a affine) of(x mat.Matrix) *mat.Dense {
	var out mat.Dense
	out.Mul(x, a.weight.T())
	rows, _ := out.Dims()
	for i := range rows {
		floats.Add(out.RawRowView(i), a.bias)
	}
	return &out
}

// of returns the normalised rows of x.
func (n normalisation) of(x *mat.Dense) *mat.Dense {
	out := mat.DenseCopyOf(x)
	rows, width := out.Dims()
	for i := range rows {
		row := out.RawRowView(i)
		floats.AddConst(-floats.Sum(row)/float64(width), row)
		floats.Scale(1/math.Sqrt(floats.Dot(row, row)/float64(width)+1e-5), row) // PyTorch's epsilon
		floats.Mul(row, n.scale)
		floats.Add(row, n.shift)
	}
	return out
}

// gelu applies the Gaussian error linear unit.
func gelu(x *mat.Dense) *mat.Dense {
	x.Apply(func(_, _ int, v float64) float64 { return v * math.Erfc(-v/math.Sqrt2) / 2 }, x)
	return x
}

// embed returns the tokens of points in the unit cube.
func (h *histogram) embed(x [][]float64) *mat.Dense {
	points := mat.NewDense(len(x), h.columns, nil)
	for i, row := range x {
		for j, v := range row {
			points.Set(i, j, (v-0.5)*math.Sqrt(12))
		}
	}
	return h.point2.of(gelu(h.point1.of(points)))
}

// predict returns the probabilities of the buckets at the queries, one row each, given observed
// points and their standardised outcomes.
func (h *histogram) predict(x [][]float64, y []float64, queries [][]float64) *mat.Dense {
	seen, tokens := h.embed(x), h.embed(queries)
	seen.Add(seen, h.outcome.of(mat.NewDense(len(y), 1, slices.Clone(y))))
	for _, l := range h.layers {
		observed := l.norm1.of(seen)
		keys, values := l.key.of(observed), l.value.of(observed)
		h.attend(l, seen, observed, keys, values)
		h.attend(l, tokens, l.norm1.of(tokens), keys, values)
	}
	p := h.head.of(h.norm.of(tokens))
	softmax(p)
	return p
}

// attend changes tokens by a layer, given their normalised state, and keys and values of the observations.
func (h *histogram) attend(l layer, tokens, normalised, keys, values *mat.Dense) {
	queries := l.query.of(normalised)
	rows, width := queries.Dims()
	observed, _ := keys.Dims()
	attended, size := mat.NewDense(rows, width, nil), width/h.heads
	for k := range h.heads {
		from, to := k*size, (k+1)*size
		var score mat.Dense
		score.Mul(queries.Slice(0, rows, from, to), keys.Slice(0, observed, from, to).T())
		score.Scale(1/math.Sqrt(float64(size)), &score)
		softmax(&score)
		attended.Slice(0, rows, from, to).(*mat.Dense).Mul(&score, values.Slice(0, observed, from, to))
	}
	tokens.Add(tokens, l.out.of(attended))
	tokens.Add(tokens, l.down.of(gelu(l.up.of(l.norm2.of(tokens)))))
}

// softmax replaces each row by its softmax.
func softmax(x *mat.Dense) {
	rows, _ := x.Dims()
	for i := range rows {
		row := x.RawRowView(i)
		total := floats.LogSumExp(row)
		for j, v := range row {
			row[j] = math.Exp(v - total)
		}
	}
}

// improvement returns the expected improvement over the target of a row of probabilities, with the same density in all of a bucket.
func (h *histogram) improvement(p []float64, target float64) float64 {
	sum := 0.0
	for k, share := range p {
		low, high := h.ends[k], h.ends[k+1]
		switch {
		case high <= target:
			sum += share * (target - (low+high)/2)
		case low < target:
			sum += share * (target - low) * (target - low) / (2 * (high - low))
		}
	}
	return sum
}
