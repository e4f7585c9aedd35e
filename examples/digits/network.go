package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
)

// activation is a hidden unit's nonlinearity; derivative takes its output.
type activation struct {
	apply      func(float64) float64
	derivative func(float64) float64
}

func activationNamed(name string) (activation, error) {
	switch name {
	case "relu":
		return activation{
			func(v float64) float64 { return math.Max(v, 0) },
			func(out float64) float64 { return math.Min(1, math.Ceil(out)) },
		}, nil
	case "tanh":
		return activation{math.Tanh, func(out float64) float64 { return 1 - out*out }}, nil
	case "logistic":
		return activation{
			func(v float64) float64 { return 1 / (1 + math.Exp(-v)) },
			func(out float64) float64 { return out * (1 - out) },
		}, nil
	default:
		return activation{}, fmt.Errorf("activation is %q, want relu, tanh or logistic", name)
	}
}

// layer is a dense layer and its momentum. Weights are in×out with the biases
// as a last row.
type layer struct {
	in, out          int
	weights, impetus []float64
}

func newLayer(in, out int, rng *rand.Rand) *layer {
	l := &layer{in: in, out: out, weights: make([]float64, (in+1)*out), impetus: make([]float64, (in+1)*out)}
	scale := math.Sqrt(2 / float64(in+out)) // Glorot and Bengio 2010
	for i := range in * out {
		l.weights[i] = scale * rng.NormFloat64()
	}
	return l
}

func matrix(rows, cols int, data []float64) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: data}
}

// forward writes x·W+b, rows×out, to dst.
func (l *layer) forward(dst, x []float64, rows int) {
	bias := l.weights[l.in*l.out:]
	for r := range rows {
		copy(dst[r*l.out:], bias)
	}
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, matrix(rows, l.in, x), matrix(l.in, l.out, l.weights), 1, matrix(rows, l.out, dst))
}

// step descends along the gradient of a batch: x are the layer's inputs, delta
// the loss's derivative by its outputs.
func (l *layer) step(x, delta, gradient []float64, rows int, h hyperparameters) {
	weights := gradient[:l.in*l.out]
	blas64.Gemm(blas.Trans, blas.NoTrans, 1/float64(rows), matrix(rows, l.in, x), matrix(rows, l.out, delta), 0, matrix(l.in, l.out, weights))
	floats.AddScaled(weights, h.weightDecay, l.weights[:l.in*l.out])
	bias := gradient[l.in*l.out : (l.in+1)*l.out]
	clear(bias)
	for r := range rows {
		floats.AddScaled(bias, 1/float64(rows), delta[r*l.out:(r+1)*l.out])
	}
	floats.Scale(h.momentum, l.impetus)
	floats.AddScaled(l.impetus, -h.learningRate, gradient[:len(l.impetus)])
	floats.Add(l.weights, l.impetus)
}

// network is a perceptron with one hidden layer and a softmax output.
type network struct {
	h              hyperparameters
	act            activation
	hidden, output *layer
	rng            *rand.Rand

	batch, units, logits, back, gradient []float64
	labels                               []int
}

func newNetwork(h hyperparameters, act activation, seed uint64, rows int) *network {
	rng := rand.New(rand.NewPCG(seed, uint64(h.hidden)))
	rows = max(rows, h.batchSize)
	return &network{
		h: h, act: act, rng: rng,
		hidden: newLayer(pixels, h.hidden, rng),
		output: newLayer(h.hidden, classes, rng),
		batch:  make([]float64, rows*pixels),
		units:  make([]float64, rows*h.hidden),
		logits: make([]float64, rows*classes),
		back:   make([]float64, rows*h.hidden),
		// large enough for either layer
		gradient: make([]float64, (max(pixels, h.hidden)+1)*max(h.hidden, classes)),
		labels:   make([]int, rows),
	}
}

// epoch trains on every image once, in batches in random order.
func (n *network) epoch(d dataset) {
	order := n.rng.Perm(len(d.y))
	for start := 0; start < len(order); start += n.h.batchSize {
		chosen := order[start:min(start+n.h.batchSize, len(order))]
		for r, i := range chosen {
			copy(n.batch[r*pixels:(r+1)*pixels], d.x[i*pixels:])
			n.labels[r] = d.y[i]
		}
		n.descend(len(chosen))
	}
}

// predict leaves the class probabilities of rows images in n.logits.
func (n *network) predict(x []float64, rows int) {
	n.hidden.forward(n.units, x, rows)
	for i, v := range n.units[:rows*n.h.hidden] {
		n.units[i] = n.act.apply(v)
	}
	n.output.forward(n.logits, n.units, rows)
	for r := range rows {
		p := n.logits[r*classes : (r+1)*classes]
		floats.AddConst(-floats.LogSumExp(p), p)
		for i := range p {
			p[i] = math.Exp(p[i])
		}
	}
}

// descend takes one step of stochastic gradient descent with momentum on the
// cross-entropy of the first rows of the batch.
func (n *network) descend(rows int) {
	n.predict(n.batch, rows)
	delta := n.logits[:rows*classes]
	for r, label := range n.labels[:rows] {
		delta[r*classes+label]--
	}
	back := matrix(rows, n.h.hidden, n.back)
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, matrix(rows, classes, delta), matrix(n.h.hidden, classes, n.output.weights), 0, back)
	for i := range rows * n.h.hidden {
		n.back[i] *= n.act.derivative(n.units[i])
	}
	n.output.step(n.units, delta, n.gradient, rows, n.h)
	n.hidden.step(n.batch, n.back, n.gradient, rows, n.h)
}

// wrong counts the images of d that the network takes for another digit; ok is
// false where the training has diverged.
func (n *network) wrong(d dataset) (count int, ok bool) {
	n.predict(d.x, len(d.y))
	for r, label := range d.y {
		p := n.logits[r*classes : (r+1)*classes]
		if math.IsNaN(floats.Sum(p)) {
			return 0, false
		}
		if floats.MaxIdx(p) != label {
			count++
		}
	}
	return count, true
}
