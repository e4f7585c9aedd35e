package optimizer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// The limits on the work of one draw: points taken from the stream, points around known
// feasible ones, random points that meet the linear constraints, and points drawn if no
// feasible one is known.
const (
	streamTries = 1000
	repairTries = 2000
	wanderTries = 100
	blindTries  = 20000
	// repairSeeds is the number of latest points that a repair starts from.
	repairSeeds = 256
)

// ErrNoFeasible means that no point was found, within a limited number of tries, that
// satisfies the constraints and is neither observed nor pending.
var ErrNoFeasible = errors.New("no feasible point was found")

// Stream sets x to its next point of the unit cube.
type Stream func(x []float64)

// Uniform is the stream of independent, uniformly distributed points.
func Uniform(rng *rand.Rand) Stream {
	return func(x []float64) {
		for i := range x {
			x[i] = rng.Float64()
		}
	}
}

// Sampler draws points that satisfy a space's constraints and are not yet taken. It is
// not safe for concurrent use.
type Sampler struct {
	encoding *Encoding
	taken    *taken
	all      []study.Point // every feasible point, if enumerated
	keys     []string      // of all, in the same order
	seeds    []study.Point // some feasible points
	rng      *rand.Rand
}

// Taken reports whether p must not be suggested: it is pending, was taken, or, in a
// finite space, was observed.
func (s *Sampler) Taken(p study.Point) bool { return s.taken.has(p) }

// TakenAt is Taken for the coordinates of a point, as Encode returns them.
func (s *Sampler) TakenAt(x []float64) bool { return s.taken.at(x) }

// BusyAt reports whether the point at x is pending or was taken in this request.
func (s *Sampler) BusyAt(x []float64) bool {
	key := KeyOf(x)
	return s.taken.pending[key] || s.taken.added[key]
}

// MarkTaken prevents later draws from repeating p.
func (s *Sampler) MarkTaken(p study.Point) { s.taken.add(p) }

// Draw returns the first acceptable point of the stream. If the stream has none within
// a limited number of tries, it looks among all points of a small finite space, or
// around known feasible points. It does not take the point. The error is ErrNoFeasible,
// or ErrExhausted if the space is finite and has been evaluated, as far as a search finds.
func (s *Sampler) Draw(next Stream) (study.Point, error) { return s.complete(next, nil) }

// complete is Draw for points that have the values of fixed.
func (s *Sampler) complete(next Stream, fixed study.Point) (study.Point, error) {
	x := make([]float64, s.encoding.Dim())
	for range streamTries {
		next(x)
		if p, ok := s.accept(x, fixed); ok {
			return p, nil
		}
	}
	if s.all != nil {
		return s.choose(fixed)
	}
	if p, ok := s.wander(next, x, fixed); ok {
		return p, nil
	}
	if p, ok := s.repair(x, fixed); ok {
		return p, nil
	}
	if p, ok := s.seek(x, fixed); ok {
		known := slices.ContainsFunc(s.seeds, func(seed study.Point) bool {
			return slices.Equal(s.encoding.Encode(seed), s.encoding.Encode(p))
		})
		s.seeds = append(s.seeds, p)
		if near, ok := s.repair(x, fixed); ok {
			return near, nil
		}
		if !known && !s.taken.has(p) {
			return p, nil
		}
	}
	if s.encoding.Discrete() && len(s.seeds) > 0 {
		return nil, ErrNoOther
	}
	return nil, fmt.Errorf("%w in %d tries: %s", ErrNoFeasible, streamTries+repairTries+blindTries, s.narrowest())
}

// narrowest names the constraint that most random points do not meet, and what to do.
func (s *Sampler) narrowest() string {
	const tries = 1000
	unmet, most := make(map[string]int), ""
	x, uniform := make([]float64, s.encoding.Dim()), Uniform(s.rng)
	for range tries {
		uniform(x)
		for _, source := range s.encoding.space.Unmet(s.encoding.Decode(x)) {
			if unmet[source]++; unmet[source] > unmet[most] {
				most = source
			}
		}
	}
	if most == "" {
		return "all that were found are being evaluated"
	}
	return fmt.Sprintf("%d of %d random points do not meet the constraint %q; relax it, or compute a parameter from the others in the program",
		unmet[most], tries, most)
}

// wander draws random points that meet the linear constraints, if the space solves some. The
// values that these do not name come from the stream's points.
func (s *Sampler) wander(next Stream, x []float64, fixed study.Point) (study.Point, bool) {
	if !s.encoding.space.Solves() {
		return nil, false
	}
	for range wanderTries {
		next(x)
		p := s.encoding.decode(x, fixed)
		s.encoding.space.Wander(p, fixed, s.rng)
		if agrees(p, fixed) && s.encoding.space.Feasible(p) && !s.taken.has(p) {
			return p, true
		}
	}
	return nil, false
}

// seek looks for a feasible point to start a repair from, taken or not. In every second try
// about half of the coordinates are at a bound, where narrow constraints leave room.
func (s *Sampler) seek(x []float64, fixed study.Point) (study.Point, bool) {
	uniform := Uniform(s.rng)
	for try := range blindTries {
		uniform(x)
		for i := range x {
			if try%2 == 1 && s.rng.IntN(2) == 0 {
				x[i] = math.Round(x[i])
			}
		}
		p := s.encoding.decode(x, fixed)
		s.encoding.space.Project(p, fixed)
		if agrees(p, fixed) && s.encoding.space.Feasible(p) {
			return p, true
		}
	}
	return nil, false
}

// accept decodes x and reports whether the point can be suggested.
func (s *Sampler) accept(x []float64, fixed study.Point) (study.Point, bool) {
	p := s.encoding.decode(x, fixed)
	s.encoding.space.Solve(p, fixed)
	return p, agrees(p, fixed) && s.encoding.space.Feasible(p) && !s.taken.has(p)
}

// agrees reports whether p has every value of fixed.
func agrees(p, fixed study.Point) bool {
	for name, value := range fixed {
		if p[name] != value {
			return false
		}
	}
	return true
}

// remaining returns the enumerated points that are not taken, or nil if the points were
// not enumerated.
func (s *Sampler) remaining() []study.Point {
	if s.all == nil {
		return nil
	}
	left := make([]study.Point, 0, len(s.all))
	for i, p := range s.all {
		if !s.taken.key(s.keys[i]) {
			left = append(left, p)
		}
	}
	return left
}

// choose picks an enumerated point at random.
func (s *Sampler) choose(fixed study.Point) (study.Point, error) {
	left := slices.DeleteFunc(s.remaining(), func(p study.Point) bool { return !agrees(p, fixed) })
	if len(left) == 0 {
		return nil, ErrExhausted
	}
	return left[s.rng.IntN(len(left))], nil
}

// repair searches around known feasible points: on the line from one of them to a
// random point, halving the distance at each step, and along one column.
func (s *Sampler) repair(x []float64, fixed study.Point) (study.Point, bool) {
	if len(s.seeds) == 0 || len(x) == 0 {
		return nil, false
	}
	const halvings = 10
	step := make([]float64, len(x))
	for range repairTries / (2 * halvings) {
		from := s.encoding.Encode(s.seeds[s.rng.IntN(len(s.seeds))])
		for i := range step {
			step[i] = s.rng.Float64() - from[i]
		}
		only := s.rng.IntN(len(x))
		for t, k := 1.0, 0; k < halvings; t, k = t/2, k+1 {
			for i := range x {
				x[i] = from[i] + t*step[i]
			}
			if p, ok := s.accept(x, fixed); ok {
				return p, true
			}
			copy(x, from)
			x[only] += t * step[only]
			if p, ok := s.accept(x, fixed); ok {
				return p, true
			}
		}
	}
	return nil, false
}
