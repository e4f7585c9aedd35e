package hebo

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// search picks the points of one request, one after another: the loop with HEBO's
// strategies.
type search struct {
	*loop.Loop
	options Options
	front   int    // how many of the places, the first, come from evolution
	mace    *mace  // nil for a single acquisition
	noisy   *noisy // nil for MACE, and for a function without noise
	// replicas is nil if no point is to be evaluated again.
	replicas *replicas
	flats    *flats // nil if the objective is not flat anywhere
	memory   *memory
}

// newSearch prepares the search for the points after batch; feasible may be nil.
func (o proposer) newSearch(
	ctx context.Context, r *optimizer.Request, m *surrogate.Model, feasible *surrogate.Feasibility, batch []optimizer.Suggestion,
	memory *memory,
) *search {
	s := &search{options: o.options, memory: memory}
	model := bayes.Gaussian(m.GP)
	s.Loop = loop.New(ctx, loop.Input{
		Request: r, Data: m.Data, Models: []bayes.Surrogate{model}, Feasibility: feasible,
		// MACE scores only its spare points by the criterion.
		Criterion: acquisition.EI{Latent: o.options.Acquisition == MACE}, Earlier: m.Earlier(), Batch: batch,
	}, loop.Options{
		Candidates: o.effort.candidates, PriorWeight: o.options.PriorWeight,
		IgnorePending: o.options.Paper, AtBest: o.options.Paper,
		Cost: o.cost(ctx, r),
	})
	places := m.Data.Places()
	noise := o.options.Noise.of(places)
	if s.replicas = s.newReplicas(places, noise); s.replicas != nil && !s.replicas.probe {
		s.Main.Known.Noise = model.Noise()
	}
	s.flats = s.newFlats(noise)
	switch {
	case s.options.Acquisition == MACE:
		s.mace = newMACE(s)
		s.breed(ctx, o.effort, s.mace.front)
	case s.options.Paper && s.options.Robust:
		s.noisy = newNoisy(s)
		s.breed(ctx, o.effort, s.noisy.best)
	}
	return s
}

// strategies returns HEBO's strategies in their order.
func (s *search) strategies() []loop.Strategy {
	return []loop.Strategy{s.Score, s.exhausted(s.again), s.fresh, s.leavePlateau, s.replicate, s.pickChoice}
}

// breed puts what evolution finds before the places, unless the places are all that
// exist. The even spread stays behind, for batches larger than that.
func (s *search) breed(ctx context.Context, e effort, find func(context.Context, effort, *mat.Dense) ([]loop.Place, error)) {
	if s.Exact {
		return
	}
	initial := s.Loop.Known()
	if s.options.Paper {
		initial = loop.Rows([]loop.Place{{X: initial.RawRowView(0)}}) // the best point
	}
	found, err := find(ctx, e, initial)
	if err == nil && len(found) > 0 {
		s.front = len(found)
		s.Put(found)
	}
}

// exhausted is a strategy that evaluates a point again when no other is left. again chooses the point.
func (s *search) exhausted(again func(left bool) (loop.Spot, bool)) loop.Strategy {
	return func(_ context.Context, t *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
		if len(t.Starts) == 0 && s.Request.Encoding.Discrete() {
			if spot, found := again(false); found {
				return s.repeat(spot), true
			}
		}
		return suggestion, false
	}
}

// fresh is a strategy that chooses the best new point.
func (s *search) fresh(ctx context.Context, t *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
	t.Best, t.Found = s.freshOf(ctx, t.Starts, nil)
	return suggestion, false
}

// freshOf returns the best new point given the best places; ok is false if there is none.
func (s *search) freshOf(ctx context.Context, starts []loop.Spot, avoided *flats) (best loop.Spot, ok bool) {
	switch {
	case s.mace != nil:
		return s.member()
	case s.noisy != nil:
		return s.noisy.next()
	}
	return s.Climb(ctx, starts, avoided.around)
}

// leavePlateau is a strategy that replaces a choice where the objective is flat.
func (s *search) leavePlateau(ctx context.Context, t *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
	if t.Found && s.flats.around(t.Best.X) {
		if t.Best, t.Found = s.spread(t.Values); !t.Found {
			t.Best, t.Found = s.freshOf(ctx, s.Starts(s.flats.avoid(t.Values, s.Places)), s.flats)
		}
	}
	return suggestion, false
}

// replicate is a strategy that evaluates a point again if that is worth as much as the
// choice.
func (s *search) replicate(_ context.Context, t *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
	again, found := s.again(true)
	if found && (!t.Found || s.replicas.probe || again.Value > s.promise(t.Best)-indifference) {
		return s.repeat(again), true
	}
	return suggestion, false
}

// pickChoice is a strategy that picks the choice.
func (s *search) pickChoice(_ context.Context, t *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
	if !t.Found {
		return suggestion, false
	}
	return s.pick(t.Best), true
}

// promise returns the value of evaluating a new point, in the unit of again's values.
func (s *search) promise(best loop.Spot) float64 {
	if s.mace == nil {
		return best.Value
	}
	x := loop.Rows([]loop.Place{best.Place})
	mean, variance := s.Main.Fantasies.Posterior(x)
	value := acquisition.EI{}.Value(&s.Main.Known, mean[0], variance[0])
	return s.Chance.OfImprovement(value, s.Chance.Log(x)[0]) + s.PriorTerm(best.X)
}

// member returns the ensemble's next point.
func (s *search) member() (best loop.Spot, ok bool) {
	counts := []int{s.front, len(s.Places)}
	if s.options.Paper && !s.Exact {
		counts = counts[:1] // the guard draws the missing points
	}
	for _, count := range counts {
		available := func(i int) bool { return i < count && !s.Request.Sampler.TakenAt(s.Places[i].X) }
		i, why, found := s.mace.choose(s.Main.Mean, s.Main.Variance, s.Evaluated, s.Picked, s.Request.N, available)
		if found {
			return loop.Spot{Place: s.Places[i], Why: why}, true
		}
	}
	return best, false
}

// pick makes a suggestion of the spot. It shows all three acquisition functions' values for
// the ensemble.
func (s *search) pick(best loop.Spot) optimizer.Suggestion {
	if s.mace != nil {
		x := loop.Rows([]loop.Place{best.Place})
		mean, variance := s.Main.Fantasies.Posterior(x)
		exact := *s.mace
		exact.robust = 0
		score := make([]float64, 3)
		exact.score(score, mean[0], variance[0], s.Chance.Log(x)[0], 0)
		best.Acquisition = map[string]float64{"ucb": -score[0], "logei": -score[1], "logpi": -score[2]}
	}
	return s.Pick(best)
}

// repeat makes a suggestion of an observed place.
func (s *search) repeat(again loop.Spot) optimizer.Suggestion {
	suggestion := s.pick(again)
	suggestion.Repeat = true
	suggestion.Reasons.Note = "evaluated again: was it good, or lucky?"
	s.replicas.done++
	s.replicas.probed = true
	return suggestion
}
