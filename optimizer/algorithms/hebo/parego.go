package hebo

import (
	"context"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// augmentation is ParEGO's ρ: how much the sum of the objectives counts beside the worst
// of them.
const augmentation = 0.05

// proposeScalars chooses each point for another mixture of the objectives: their augmented
// Chebyshev norm with random weights (ParEGO; Knowles 2006, ParEGO: A Hybrid Algorithm
// with On-Line Landscape Approximation for Expensive Multiobjective Optimization Problems).
func (o proposer) proposeScalars(
	ctx context.Context, r *optimizer.Request, memory *memory,
) (batch []optimizer.Suggestion, state optimizer.State, err error) {
	costs := unitCosts(r.Problem)
	for len(batch) < r.N && (len(batch) == 0 || ctx.Err() == nil) {
		weights := simplex(r)
		next := *r
		next.Problem = r.Scalar(func(i int) float64 { return chebyshev(costs[i], weights) })
		next.First += len(batch)
		for k, b := range batch {
			next.Pending = append(next.Pending[:len(next.Pending):len(next.Pending)], optimizer.Pending{Trial: r.First + k, Point: b.Point})
		}
		next.N = 1
		var one []optimizer.Suggestion
		one, state, err = o.proposeSingle(ctx, &next, memory)
		if err != nil || len(one) == 0 {
			return batch, state, err
		}
		// A model of one mixture tells nothing of the objectives' own values.
		one[0].Reasons.Mean, one[0].Reasons.SD = nil, nil
		r.Sampler.MarkTaken(one[0].Point)
		batch = append(batch, one[0])
	}
	return batch, state, nil
}

// unitCosts returns each completed observation's costs, such that each objective has the
// unit interval as its extent.
func unitCosts(p *optimizer.Problem) [][]float64 {
	costs := make([][]float64, len(p.Observations))
	for k, objective := range p.Objectives {
		low, high := math.Inf(1), math.Inf(-1)
		for i, o := range p.Observations {
			if o.Outcome == optimizer.OutcomeCompleted {
				c := min(max(objective.Direction.Cost(o.Values[k]), -math.MaxFloat64), math.MaxFloat64) / 2 // so that no difference overflows
				costs[i] = append(costs[i], c)
				low, high = min(low, c), max(high, c)
			}
		}
		for _, c := range costs {
			if c != nil && high > low {
				c[k] = (c[k] - low) / (high - low)
			} else if c != nil {
				c[k] = 0
			}
		}
	}
	return costs
}

// simplex draws weights that are not negative and sum to 1.
func simplex(r *optimizer.Request) []float64 {
	weights, sum := make([]float64, len(r.Objectives)), 0.0
	for k := range weights {
		weights[k] = r.Rand.ExpFloat64()
		sum += weights[k]
	}
	for k := range weights {
		weights[k] /= sum
	}
	return weights
}

// chebyshev returns the augmented Chebyshev norm of costs.
func chebyshev(costs, weights []float64) float64 {
	var most, sum float64
	for k, c := range costs {
		most, sum = max(most, weights[k]*c), sum+weights[k]*c
	}
	return most + augmentation*sum
}
