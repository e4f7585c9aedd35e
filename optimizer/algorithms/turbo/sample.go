package turbo

import (
	"context"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
)

// The candidates over which a function is drawn: a number for each column, as in the paper,
// within bounds. A draw costs their number to the third power, so the upper bound is lower
// than the paper's 5,000.
const (
	eachColumn      = 100
	leastCandidates = 200
	mostCandidates  = 1000
)

// sample returns a strategy that picks the lowest point, in the trust region, of a function
// drawn from the model. It leaves the choice to others where the region has no candidate.
func sample(l *loop.Loop, region *loop.Region, why string) loop.Strategy {
	var drawn *loop.Drawn
	return func(ctx context.Context, _ *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
		r := l.Request
		if drawn == nil {
			count := min(max(leastCandidates, eachColumn*r.Encoding.Dim()), mostCandidates)
			if ctx.Err() != nil {
				count = leastCandidates
			}
			// A function for each point of the request.
			if drawn = l.Draw(loop.Gather(nil, r, count, region.Stream(r), l.Taken), r.N); drawn == nil {
				return suggestion, false
			}
		}
		best, ok := drawn.Lowest()
		if !ok {
			return suggestion, false
		}
		best.Why = why
		return l.Pick(best), true
	}
}
