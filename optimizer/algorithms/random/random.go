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
	batch, err := r.Extend(ctx, nil, r.N, func() (optimizer.Suggestion, error) {
		point, err := r.Sampler.Draw(optimizer.Uniform(r.Rand))
		if err != nil {
			return optimizer.Suggestion{}, err
		}
		r.Sampler.MarkTaken(point)
		return optimizer.Suggestion{Point: point, Source: optimizer.SourceRandom, Reasons: optimizer.Reasons{Note: "drawn at random"}}, nil
	})
	return batch, nil, err
}
