package loop

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// improved is how many points of one request are searched for beyond the candidates.
// With more points at once, there is so little information for each that the best
// candidate is as good.
const improved = 64

// Spot is a place with its value.
type Spot struct {
	Place
	Value float64
	Why   string // why it was picked, unless for its value alone
	// Acquisition, if not nil, replaces the values that are shown for the spot.
	Acquisition map[string]float64
}

// Turn is what the strategies of one pick hand on to each other. It begins empty for each
// point.
type Turn struct {
	// Values are those of the places, −Inf where a place is taken, and Starts the best of
	// them: Score sets both.
	Values []float64
	Starts []Spot
	// Best is the choice so far, if Found.
	Best  Spot
	Found bool
}

// Strategy has its part in the choice of the next point. It picks the point (by Pick, which
// also makes it pending in the models), or changes the turn and leaves the choice to the
// strategies behind it.
type Strategy func(ctx context.Context, t *Turn) (suggestion optimizer.Suggestion, picked bool)

// CutShort ends the note of a point that was found by an incomplete search.
const CutShort = "; the time for this suggestion ran out"

// Fill adds points to the batch until it has n, or until the strategies pick none. For
// each point it runs them in their order until one of them picks it.
func (l *Loop) Fill(ctx context.Context, batch []optimizer.Suggestion, n int, strategies []Strategy) []optimizer.Suggestion {
	for len(batch) < n {
		var suggestion optimizer.Suggestion
		var t Turn
		picked := false
		for i := 0; i < len(strategies) && !picked; i++ {
			suggestion, picked = strategies[i](ctx, &t)
		}
		if !picked {
			break // the guard draws the missing points
		}
		suggestion.Reasons.Note += l.Options.Cost.note(suggestion.Point)
		if ctx.Err() != nil {
			suggestion.Reasons.Note += CutShort
		}
		batch = append(batch, suggestion)
	}
	return batch
}

// Plain is the list of strategies of an optimiser without any of its own.
func (l *Loop) Plain() []Strategy { return []Strategy{l.Score, l.Best, l.PickBest} }

// Score is a strategy that brings the models, the incumbents and the places' values up to
// date.
func (l *Loop) Score(_ context.Context, t *Turn) (suggestion optimizer.Suggestion, picked bool) {
	l.refresh()
	of := refreshed(l.models())
	t.Values = make([]float64, len(l.Places))
	for i := range t.Values {
		t.Values[i] = math.Inf(-1)
		if !l.Request.Sampler.TakenAt(l.Places[i].X) {
			t.Values[i] = l.value(of, l.Evaluated+i, l.LogP[i]) + l.PriorTerms[i]
		}
	}
	t.Starts = l.Starts(t.Values)
	return suggestion, false
}

// Best is a strategy that chooses the best point that a search from the starts finds.
func (l *Loop) Best(ctx context.Context, t *Turn) (suggestion optimizer.Suggestion, picked bool) {
	t.Best, t.Found = l.Climb(ctx, t.Starts, nil)
	return suggestion, false
}

// Climb returns the best spot that a search from the starts finds; ok is false without a
// start. If the time has run out, it takes the best start. avoided, if not nil, reports
// which places are worse than all others.
func (l *Loop) Climb(ctx context.Context, starts []Spot, avoided func(x []float64) bool) (best Spot, ok bool) {
	if len(starts) == 0 {
		return best, false
	}
	if !l.Exact && l.Picked < improved {
		return l.Improve(ctx, starts, avoided), true
	}
	return starts[0], true
}

// PickBest is a strategy that picks the turn's choice.
func (l *Loop) PickBest(_ context.Context, t *Turn) (suggestion optimizer.Suggestion, picked bool) {
	if !t.Found {
		return suggestion, false
	}
	return l.Pick(t.Best), true
}

// Starts returns the best places, best first: half from the first half of the places
// and half from the second, which are of different kinds. A search that started only
// around the best points would stay there.
func (l *Loop) Starts(values []float64) []Spot {
	var starts []Spot
	middle := len(values) / 2
	add := func(lo, hi, count int) {
		negative := make([]float64, hi-lo)
		for i := range negative {
			negative[i] = -values[lo+i]
		}
		for _, i := range Lowest(negative, count) {
			if !math.IsInf(values[lo+i], -1) && !math.IsNaN(values[lo+i]) {
				starts = append(starts, Spot{Place: l.Places[lo+i], Value: values[lo+i]})
			}
		}
	}
	add(0, middle, restarts/2)
	add(middle, len(values), restarts/2)
	slices.SortStableFunc(starts, func(a, b Spot) int { return cmp.Compare(b.Value, a.Value) })
	return starts
}

// Evaluate returns the places' values, those of their priors included.
func (l *Loop) Evaluate(places []Place) []float64 {
	x := Rows(places)
	of, logP, prior := l.posteriors(x), l.Chance.Log(x), l.priorTerms(places)
	values := make([]float64, len(places))
	for i := range places {
		values[i] = l.value(of, i, logP[i]) + prior[i]
	}
	return values
}
