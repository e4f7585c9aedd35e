package hebo

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// The bounds on the search from the best candidates.
const (
	moveRounds    = 3   // changes of one discrete column
	movesAtOnce   = 128 // neighbours looked at in a round
	climbRounds   = 20  // evaluations of the gradient, all climbers at once
	climbingLarge = 8   // the same for a large model
	largeModel    = 300
)

// improve searches from the starts, best first, and returns the best spot: first by
// changes of one discrete column, then by the gradient in the continuous ones. It ends
// early when ctx ends, and at once if the options ask for no restarts.
func (s *search) improve(ctx context.Context, starts []spot, avoided *flats) spot {
	if s.options.Restarts == 0 {
		return starts[0]
	}
	spots := append([]spot(nil), starts...)
	for i := range spots[:min(2, len(spots))] {
		for range moveRounds {
			if ctx.Err() != nil {
				break
			}
			better, found := s.bestOf(s.neighbours(spots[i].place), spots[i].value)
			if !found {
				break
			}
			spots[i] = better
		}
	}
	spots = append(spots, s.climb(ctx, spots)...)
	best, flat := spots[0], avoided.around(spots[0].x)
	for _, candidate := range spots[1:] {
		beside := avoided.around(candidate.x)
		if flat && !beside || flat == beside && candidate.value > best.value {
			best, flat = candidate, beside
		}
	}
	return best
}

// bestOf returns the best of the places, or found if none is better.
func (s *search) bestOf(places []place, value float64) (best spot, found bool) {
	if len(places) == 0 {
		return spot{}, false
	}
	x := rows(places)
	mean, variance := s.fantasies.Posterior(x)
	logP, prior := s.chance.log(x), s.believed(places)
	for i, p := range places {
		if v := s.value(mean.RawRowView(i), variance[i], p.x, logP[i]) + prior[i]; v > value {
			best, value, found = spot{place: p, value: v}, v, true
		}
	}
	return best, found
}

// neighbours returns the feasible places that differ from p in one discrete column: by
// one level, by an eighth of the levels, or by the category. If they are too many, it
// begins at another column for each trial.
func (s *search) neighbours(p place) []place {
	var found []place
	columns := s.r.Encoding.Columns()
	try := func(i int, u float64) {
		x := append([]float64(nil), p.x...)
		x[i] = u
		if next, ok := s.feasible(x); ok && len(found) < movesAtOnce {
			found = append(found, next)
		}
	}
	for k := range columns {
		i := (k + s.first + s.picked) % len(columns)
		c := columns[i]
		_, active := p.point[c.Parameter.Name]
		if !active || c.Levels == 0 {
			continue
		}
		if len(found) == movesAtOnce {
			break
		}
		if c.Categorical() {
			here := c.Level(p.x[i])
			for k := range min(c.Levels, movesAtOnce) {
				if k != here {
					try(i, c.Place(k))
				}
			}
			continue
		}
		for _, value := range beside(c, p) {
			try(i, value)
		}
	}
	return found
}

// beside returns the coordinates of other values of a discrete, ordered column.
func beside(c optimizer.Column, p place) []float64 {
	here, ok := c.Parameter.Index(p.point[c.Parameter.Name])
	if !ok {
		return nil
	}
	var out []float64
	far := c.Levels / 8
	for _, k := range []int{here - 1, here + 1, here - far, here + far} {
		if k >= 0 && k < c.Levels && k != here {
			out = append(out, c.Parameter.ToUnit(c.Parameter.At(k)))
		}
	}
	return out
}

// feasible returns the place at x if it can be suggested.
func (s *search) feasible(x []float64) (place, bool) {
	point := s.r.Encoding.Decode(x)
	if !s.r.Space.Feasible(point) {
		return place{}, false
	}
	at := s.r.Encoding.Encode(point)
	return place{point, at}, !s.taken(at)
}

// climb follows the gradient from the spots and returns the feasible ends.
func (s *search) climb(ctx context.Context, from []spot) []spot {
	climbers := make([]*climber, len(from))
	for i, start := range from {
		climbers[i] = newClimber(start.x, s.continuous(start.place))
		if s.within != nil {
			climbers[i].lo, climbers[i].hi = s.within.lo, s.within.hi
		}
	}
	rounds := climbRounds
	if s.model.Len() > largeModel {
		rounds = climbingLarge
	}
	for range rounds {
		if ctx.Err() != nil {
			break
		}
		s.round(climbers)
	}
	var reached []spot
	for i, c := range climbers {
		if !c.started || !(c.value > from[i].value) {
			continue
		}
		if p, ok := s.feasible(c.x); ok {
			reached = append(reached, spot{place: p, value: c.value})
		}
	}
	return reached
}

// continuous returns which columns a climber can move: those of active
// parameters without steps.
func (s *search) continuous(p place) []bool {
	free := make([]bool, len(p.x))
	for i, c := range s.r.Encoding.Columns() {
		_, active := p.point[c.Parameter.Name]
		free[i] = active && c.Levels == 0
	}
	return free
}

// round evaluates the trials of all climbers that are not done, together.
func (s *search) round(climbers []*climber) {
	var asking []*climber
	var places []place
	for _, c := range climbers {
		if c.done {
			continue
		}
		if point := s.r.Encoding.Decode(c.trial); !s.r.Space.Feasible(point) {
			c.report(math.Inf(-1), nil)
			continue
		}
		asking = append(asking, c)
		places = append(places, place{x: c.trial})
	}
	if len(asking) == 0 {
		return
	}
	x := rows(places)
	g := s.fantasies.Gradients(x)
	var logP []float64
	var dLogP *mat.Dense
	if s.chance.model != nil {
		logP, dLogP = s.chance.model.Gradient(x)
	}
	dMean := make([]float64, s.fantasies.Draws())
	for i, c := range asking {
		value, dVariance := s.criterion.Gradient(&s.known, dMean, g.Mean.RawRowView(i), g.Variance[i])
		gradient := make([]float64, len(c.trial))
		for k := range gradient {
			gradient[k] += dVariance * g.DVariance.At(i, k)
			for draw, d := range dMean {
				gradient[k] += d * g.DMean[draw].At(i, k)
			}
		}
		if s.chance.model != nil {
			value = s.chance.gradient(s.criterion, value, gradient, logP[i], dLogP.RawRowView(i))
		}
		value += s.penalty.value(gradient, c.trial)
		if s.beliefs != nil {
			value += s.trust * s.beliefs.log(gradient, c.trial, s.trust)
		}
		c.report(value, gradient)
	}
}
