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
	trial := r.First - 1
	batch, err := r.Extend(ctx, nil, r.N, func() (optimizer.Suggestion, error) {
		trial++ // each has its own source, so that its point does not depend on how many are asked for at once
		point, err := r.Sampler.Draw(optimizer.Uniform(optimizer.NewRand(r.Seed, trial)))
		if err != nil {
			return optimizer.Suggestion{}, err
		}
		r.Sampler.MarkTaken(point)
		return optimizer.Suggestion{Point: point, Source: optimizer.SourceRandom, Reasons: optimizer.Reasons{Note: "drawn at random"}}, nil
	})
	return batch, nil, err
}
