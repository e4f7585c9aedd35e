package duration

import (
	"context"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate/transfer"
)

const (
	// leastOwn is the number of evaluations with a known time that a model needs if earlier studies say which take longer.
	leastOwn = 2
	// fewOwn is the number of evaluations with a known time from which on the model does without earlier studies: its own
	// say as much.
	fewOwn = 48
)

// earlier is what earlier studies say of how long evaluations take. A nil one says nothing.
type earlier struct {
	sources transfer.Sources
	spread  float64 // the standard deviation of a source's logarithms
}

// readEarlier returns what a problem's earlier studies say of times or, with costs, of costs; nil for nothing. The error
// is ctx's.
func readEarlier(ctx context.Context, encoding *optimizer.Encoding, p *optimizer.Problem, costs bool) (*earlier, error) {
	if encoding.Dim() == 0 {
		return nil, nil
	}
	logs, some := make([][]float64, len(p.Earlier)), false
	for i := range p.Earlier {
		took, least := p.Earlier[i].Seconds, shortest
		if costs {
			if took = p.Earlier[i].Spent; took != nil {
				least = floats.Max(took) * cheapest
			}
		}
		for _, v := range took {
			if v == 0 {
				v = math.NaN()
			}
			logs[i] = append(logs[i], math.Log(max(v, least)))
			some = true
		}
	}
	if !some {
		return nil, nil
	}
	sources, spread, err := transfer.ReadEfforts(ctx, &optimizer.Problem{Earlier: p.Earlier, Seed: p.Seed}, encoding, logs)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil || sources == nil:
		return nil, nil //nolint:nilerr // a model without them serves
	}
	return &earlier{sources, spread}, nil
}

// longer returns by how much the logarithm of the time at the rows of x is above that of other places.
func (e *earlier) longer(x *mat.Dense) []float64 {
	logs := e.sources.Mean(x)
	floats.Scale(e.spread, logs)
	return logs
}
