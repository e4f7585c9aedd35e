package hebo

import (
	"context"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// explore is the period of the portfolio's upper confidence bound.
const explore = 4

// search picks the points of one request, one after another: the loop with HEBO's
// strategies.
type search struct {
	*loop.Loop
	options Options
	kappa   float64      // weight of the uncertainty in bounds
	region  *loop.Region // nil without a trust region
	front   int          // how many of the places are on the ensemble's Pareto front
	mace    *mace        // nil for a single acquisition
	// replicas is nil if no point is to be evaluated again.
	replicas *replicas
	flats    *flats      // nil if the objective is not flat anywhere
	trail    *trail      // nil if no point is drawn at random
	drawn    *loop.Drawn // nil if no function was drawn
	memory   *memory
}

// newSearch prepares the search for the points after batch; feasible may be nil.
func (o proposer) newSearch(ctx context.Context, r *optimizer.Request, m *surrogate.Model, feasible *surrogate.Feasibility, batch []optimizer.Suggestion, memory *memory) *search {
	s := &search{options: o.options, memory: memory, kappa: o.options.Kappa}
	if s.kappa == 0 {
		s.kappa = confidence(m.Data.Completed, r.Parallelism, r.Encoding.Dim())
	}
	model := bayes.Gaussian(m.GP)
	s.Loop = loop.New(ctx, loop.Input{
		Request: r, Data: m.Data, Models: []bayes.Surrogate{model}, Feasibility: feasible,
		Criterion: o.options.Acquisition.criterion(s.kappa), Batch: batch,
	}, loop.Options{
		Fantasy: o.options.Fantasy, Draws: o.options.Draws, Candidates: o.options.Candidates,
		Restarts: o.options.Restarts, PriorWeight: o.options.PriorWeight,
	})
	places := m.Data.Places()
	noise := o.options.Noise.of(places)
	if s.replicas = s.newReplicas(places, noise); s.replicas != nil && !s.replicas.probe {
		s.Main.Known.Noise = model.Noise()
	}
	s.trail = s.newTrail(noise, batch)
	s.flats = s.newFlats(noise)
	if o.options.TrustRegion {
		side, _ := loop.Side(m.Data.Outcomes(), max(1, r.Parallelism), r.Encoding.Dim(), 0)
		s.region = loop.NewRegion(model, m.Data, side)
	}
	if s.options.Acquisition == MACE {
		s.ensemble(ctx)
	}
	return s
}

// strategies returns HEBO's strategies in their order.
func (s *search) strategies() []loop.Strategy {
	return []loop.Strategy{s.alternate, s.escape, s.Look, s.exhausted, s.fresh, s.leavePlateau, s.replicate, s.take}
}

// ensemble puts those of the Pareto front before the places, unless the places are all
// that exist. The even spread stays behind, for batches larger than the front.
func (s *search) ensemble(ctx context.Context) {
	s.mace = newMACE(s)
	if s.Exact {
		return
	}
	front, err := s.mace.front(ctx, s.Loop.Known())
	if err == nil && len(front) > 0 {
		s.front = len(front)
		s.Put(front)
	}
}

// alternate is a strategy that changes the acquisition function from point to point, for
// Portfolio.
func (s *search) alternate(context.Context, *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
	if s.options.Acquisition == Portfolio {
		s.Criterion = bayes.LogEI{}
		if (s.First+s.Picked)%explore == 0 {
			s.Criterion = bayes.UCB{Kappa: s.kappa}
		}
	}
	return suggestion, false
}

// exhausted is a strategy that evaluates a point again when no other is left.
func (s *search) exhausted(_ context.Context, t *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
	if len(t.Starts) == 0 && s.Request.Encoding.Discrete() {
		if again, found := s.again(false); found {
			return s.repeat(again), true
		}
	}
	return suggestion, false
}

// fresh is a strategy that chooses the best new point.
func (s *search) fresh(ctx context.Context, t *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
	t.Best, t.Found = s.freshOf(ctx, t.Starts, nil)
	return suggestion, false
}

// freshOf returns the best new point given the best places; ok is false if there is none.
func (s *search) freshOf(ctx context.Context, starts []loop.Spot, avoided *flats) (best loop.Spot, ok bool) {
	if s.options.Fantasy == Thompson {
		return s.sample()
	}
	if s.mace != nil {
		return s.member()
	}
	if s.region != nil && !s.Exact && (s.First+s.Picked)%2 == 1 {
		if best, ok = s.Local(ctx, s.region); ok {
			return best, true
		}
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

// take is a strategy that picks the choice.
func (s *search) take(_ context.Context, t *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
	if !t.Found {
		return suggestion, false
	}
	return s.pick(t.Best), true
}

// promise returns the value of evaluating a new point, in the unit of again's values.
func (s *search) promise(best loop.Spot) float64 {
	if s.Criterion == (bayes.LogEI{}) && s.options.Fantasy != Thompson {
		return best.Value
	}
	x := loop.Rows([]loop.Place{best.Place})
	mean, variance := s.Main.Fantasies.Posterior(x)
	value := bayes.LogEI{}.Value(&s.Main.Known, mean.RawRowView(0), variance[0])
	return s.Chance.OfImprovement(value, s.Chance.Log(x)[0]) + s.Trust*s.Beliefs.Log(nil, best.X, 0)
}

// member returns the ensemble's next point.
func (s *search) member() (best loop.Spot, ok bool) {
	for _, count := range []int{s.front, len(s.Places)} {
		available := func(i int) bool { return i < count && !s.Request.Sampler.TakenAt(s.Places[i].X) }
		i, why, found := s.mace.choose(s.Main.Mean, s.Main.Variance, s.Evaluated, s.Picked, s.Request.N, available)
		if found {
			return loop.Spot{Place: s.Places[i], Why: why}, true
		}
	}
	return best, false
}

// pick makes a suggestion of the spot. It shows the drawn function's value for Thompson
// sampling, and all three acquisition functions' for the ensemble.
func (s *search) pick(best loop.Spot) optimizer.Suggestion {
	x := []loop.Place{best.Place}
	switch {
	case best.Why == lowestDrawn:
		best.Acquisition = map[string]float64{string(Thompson): best.Value - s.Believed(x)[0]}
	case s.mace != nil:
		mean, variance := s.Main.Fantasies.Posterior(loop.Rows(x))
		exact := *s.mace
		exact.robust = 0
		score := make([]float64, 3)
		exact.score(score, mean.RawRowView(0), variance[0], s.Chance.Log(loop.Rows(x))[0], 0)
		best.Acquisition = map[string]float64{string(UCB): -score[0], string(LogEI): -score[1], string(LogPI): -score[2]}
	}
	s.trail.add(best.X)
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
