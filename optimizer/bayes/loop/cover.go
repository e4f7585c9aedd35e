package loop

import (
	"context"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// coverRounds is the number of times that Cover halves the volume in which it samples.
const coverRounds = 30

// Cover returns a strategy that chooses the best of random points whose density doubles
// from round to round (δ-cover sampling; De Freitas, Smola and Zoghi 2012, as Bodin et al.
// 2020 describe it): count points in the whole cube, and then coverRounds times count in a
// cube around the best so far, of half the volume of the last one. Unlike Improve it does
// not start at the best evaluations. In a small finite space it takes the best of all
// places, and without a feasible sample the best of the turn's Starts: Score MUST come before
// it. When ctx ends, it takes the best so far, and of a very large batch it searches only for
// the first points.
func (l *Loop) Cover(count int) Strategy {
	return func(ctx context.Context, t *Turn) (suggestion optimizer.Suggestion, picked bool) {
		if t.Found = len(t.Starts) > 0; t.Found {
			t.Best = t.Starts[0]
		}
		if l.Exact || l.Picked >= improved {
			return suggestion, false
		}
		var best Spot
		found := false
		for round := 0; round <= coverRounds && ctx.Err() == nil; round++ {
			places := Gather(nil, l.Request, count, l.within(best.X, math.Exp2(-float64(round)/float64(l.Request.Encoding.Dim()))), l.Taken)
			least := math.Inf(-1)
			if found {
				least = best.Value
			}
			if better, ok := l.bestOf(places, least); ok {
				best, found = better, true
			}
		}
		if found {
			t.Best, t.Found = best, true
		}
		return suggestion, false
	}
}

// within returns a stream of points drawn uniformly from the part of the unit cube that
// lies in a cube of the given side around the centre; nil is the middle.
func (l *Loop) within(centre []float64, side float64) optimizer.Stream {
	return func(x []float64) {
		for i := range x {
			at := 0.5
			if centre != nil {
				at = centre[i]
			}
			low, high := max(0, at-side/2), min(1, at+side/2)
			x[i] = low + (high-low)*l.Request.Rand.Float64()
		}
	}
}
