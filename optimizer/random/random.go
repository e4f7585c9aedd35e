// Package random is the optimiser that draws points independently and uniformly on each
// parameter's scale: the baseline that other optimisers have to beat.
package random

import (
	"context"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// New returns the optimiser. It ignores observations and keeps no state.
func New() optimizer.Optimizer { return optimizer.GuardBlind(proposer{}) }

type proposer struct{}

// Propose implements optimizer.Proposer.
func (proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	batch := make([]optimizer.Suggestion, 0, r.N)
	for len(batch) < r.N {
		if ctx.Err() != nil && len(batch) > 0 {
			break
		}
		point, err := r.Sampler.Draw(optimizer.Uniform(r.Rand))
		if err != nil {
			return batch, nil, err
		}
		r.Sampler.Take(point)
		batch = append(batch, optimizer.Suggestion{Point: point, Source: optimizer.SourceRandom, Reasons: optimizer.Reasons{
			Pending: len(r.Pending) + len(batch), Note: "drawn at random",
		}})
	}
	return batch, nil, nil
}
