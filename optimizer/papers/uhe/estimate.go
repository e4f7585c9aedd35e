package uhe

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/study"
)

// Estimate is what a method takes the objective to be after some evaluations: a Gaussian
// process with a Matérn-5/2 kernel. If the method samples hyperparameters, the fields are the
// samples' geometric means. It is safe for concurrent use.
type Estimate struct {
	// Lengthscales are those of the encoding's columns, which have the width 1.
	Lengthscales []float64
	// SD and Noise are the standard deviations of the objective and of the noise of an
	// evaluation, in units of the objective.
	SD, Noise float64

	data     *surrogate.Data
	samples  []*gp.Model
	encoding *optimizer.Encoding
}

// NewEstimate returns the estimate of the method by the evaluations of p. state is the
// one that the method returned last, or nil; the search starts from it, as a suggestion's does.
// The lengthscales of Adaptive are those after the division. The error means that there are
// too few evaluations, that no model fits, or that ctx ended.
func NewEstimate(ctx context.Context, o Options, p *optimizer.Problem, state optimizer.State) (*Estimate, error) {
	encoding := optimizer.NewEncoding(p.Space)
	d := observe(p, encoding)
	if d.Completed < 2 || encoding.Dim() == 0 {
		return nil, errors.New("estimate: at least two completed evaluations and one parameter are needed")
	}
	m, e := newModel(encoding, d, o.Prior), &Estimate{data: d, encoding: encoding}
	memory := readMemory(state, o.Method, encoding.Dim()+1)
	all, err := proposer{o}.hyperparameters(ctx, m, memory.Fitted, optimizer.NewRand(p.Seed, len(p.Observations)))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("estimate: %w", err)
	}
	logs := make([]float64, encoding.Dim()+2)
	for _, h := range all {
		if o.Method == Adaptive {
			h = m.shrunk(h, memory.Growth.least())
		}
		process, err := m.condition(h)
		if err != nil {
			return nil, fmt.Errorf("estimate: %w", err)
		}
		e.samples = append(e.samples, process)
		for i, v := range append(h.Kernel, math.Log(h.Noise)) {
			logs[i] += v / float64(len(all))
		}
	}
	for _, v := range logs[:encoding.Dim()] {
		e.Lengthscales = append(e.Lengthscales, math.Exp(v))
	}
	_, e.SD = d.Moments(0, math.Exp(logs[encoding.Dim()]))
	_, e.Noise = d.Moments(0, math.Exp(logs[encoding.Dim()+1]))
	return e, nil
}

// Predict returns the posterior mean of the objective at the points.
func (e *Estimate) Predict(points []study.Point) []float64 {
	if len(points) == 0 {
		return nil
	}
	x := mat.NewDense(len(points), e.encoding.Dim(), nil)
	for i, p := range points {
		x.SetRow(i, e.encoding.Encode(p))
	}
	mean := make([]float64, len(points))
	for _, s := range e.samples {
		for i, v := range s.Mean(x) {
			mean[i] += v / float64(len(e.samples))
		}
	}
	for i, v := range mean {
		mean[i], _ = e.data.Moments(v, 1)
	}
	return mean
}
