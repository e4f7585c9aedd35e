package loop

import (
	"context"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// The bounds on the search from the best candidates.
const (
	restarts      = 4   // of the best candidates that it improves
	moveRounds    = 3   // changes of one discrete column
	movesAtOnce   = 128 // neighbours evaluated in a round
	climbRounds   = 20  // evaluations of the gradient, all climbers at once
	climbingLarge = 8   // the same for a large model
	largeModel    = 300
)

// Improve searches from the starts, best first, and returns the best spot: first by
// changes of one discrete column, then by the gradient in the continuous ones. It ends
// early when ctx ends. avoided, if not nil, tells which places are worse than all others.
func (l *Loop) Improve(ctx context.Context, starts []Spot, avoided func(x []float64) bool) Spot {
	spots := append([]Spot(nil), starts...)
	for i := range spots[:min(2, len(spots))] {
		for range moveRounds {
			if ctx.Err() != nil {
				break
			}
			better, found := l.bestOf(l.neighbours(spots[i].Place), spots[i].Value)
			if !found {
				break
			}
			spots[i] = better
		}
	}
	spots = append(spots, l.climb(ctx, spots)...)
	around := func(x []float64) bool { return avoided != nil && avoided(x) }
	best, flat := spots[0], around(spots[0].X)
	for _, candidate := range spots[1:] {
		beside := around(candidate.X)
		if flat && !beside || flat == beside && candidate.Value > best.Value {
			best, flat = candidate, beside
		}
	}
	return best
}

// bestOf returns the best of the places, or found if none is better.
func (l *Loop) bestOf(places []Place, value float64) (best Spot, found bool) {
	if len(places) == 0 {
		return Spot{}, false
	}
	for i, v := range l.Evaluate(places) {
		if v > value {
			best, value, found = Spot{Place: places[i], Value: v}, v, true
		}
	}
	return best, found
}

// neighbours returns the feasible places that differ from p in one discrete column: by
// one level, by an eighth of the levels, or by the category. If they are too many, it
// begins at another column for each point.
func (l *Loop) neighbours(p Place) []Place {
	var found []Place
	columns := l.Request.Encoding.Columns()
	try := func(i int, u float64) {
		x := append([]float64(nil), p.X...)
		x[i] = u
		if next, ok := l.feasible(x); ok && len(found) < movesAtOnce {
			found = append(found, next)
		}
	}
	for k := range columns {
		i := (k + l.First + l.Picked) % len(columns)
		c := columns[i]
		_, active := p.Point[c.Parameter.Name]
		if !active || c.Smooth() {
			continue
		}
		if len(found) == movesAtOnce {
			break
		}
		if c.Categorical() {
			here := c.Level(p.X[i])
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
func beside(c optimizer.Column, p Place) []float64 {
	here, ok := c.Parameter.Index(p.Point[c.Parameter.Name])
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
func (l *Loop) feasible(x []float64) (Place, bool) {
	point := l.Request.Encoding.Decode(x)
	if !l.Request.Space.Feasible(point) {
		return Place{}, false
	}
	at := l.Request.Encoding.Encode(point)
	return Place{point, at}, !l.Taken(at)
}

// climb follows the gradient from the spots and returns the feasible ends.
func (l *Loop) climb(ctx context.Context, from []Spot) []Spot {
	climbers := make([]*climber, len(from))
	for i, start := range from {
		climbers[i] = newClimber(start.X, l.continuous(start.Place))
	}
	rounds := climbRounds
	if l.Main.Model.Len() > largeModel {
		rounds = climbingLarge
	}
	for range rounds {
		if ctx.Err() != nil {
			break
		}
		l.round(climbers)
	}
	var reached []Spot
	for i, c := range climbers {
		if !c.started || !(c.value > from[i].Value) {
			continue
		}
		if p, ok := l.feasible(c.x); ok {
			reached = append(reached, Spot{Place: p, Value: c.value})
		}
	}
	return reached
}

// continuous returns which columns a climber can move: those of active
// parameters without steps, or with very many.
func (l *Loop) continuous(p Place) []bool {
	free := make([]bool, len(p.X))
	for i, c := range l.Request.Encoding.Columns() {
		_, active := p.Point[c.Parameter.Name]
		free[i] = active && c.Smooth()
	}
	return free
}

// round evaluates the next places of all climbers that are not done, together.
func (l *Loop) round(climbers []*climber) {
	var asking []*climber
	var places []Place
	for _, c := range climbers {
		if c.done {
			continue
		}
		l.Request.Encoding.Project(c.next)
		if point := l.Request.Encoding.Decode(c.next); !l.Request.Space.Feasible(point) {
			c.observe(math.Inf(-1), nil)
			continue
		}
		asking = append(asking, c)
		places = append(places, Place{X: c.next})
	}
	if len(asking) == 0 {
		return
	}
	x := Rows(places)
	logP, dLogP := l.slopesOfChance(x)
	values, gradients := l.slopes(x)
	for i, c := range asking {
		value, gradient := values[i], gradients[i]
		if logP != nil {
			value = l.Chance.gradient(l.reward(), value, gradient, logP[i], dLogP.RawRowView(i))
		}
		value += l.priorTerm(gradient, c.next)
		c.observe(value, gradient)
	}
}
