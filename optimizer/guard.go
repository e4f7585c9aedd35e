package optimizer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// MaxEnumerated is the largest number of points for which a finite space is handled as
// the list of its feasible points.
const MaxEnumerated = 10_000

// maxSize is the number of points, ignoring constraints, beyond which a space is
// assumed to have more than MaxEnumerated feasible points.
const maxSize = 1 << 20

// Request is a call of Suggest as the algorithm behind the guard sees it.
type Request struct {
	// Problem's First and Pending already include the initial points that the guard
	// added to the batch.
	*Problem
	// Asked is the problem in which evaluations are pending also if it is foreseen how they end.
	Asked    *Problem
	State    State
	N        int // at least 1
	Rand     *rand.Rand
	Encoding *Encoding
	// Sampler draws feasible points. The points that it has taken are forgotten after
	// the request.
	Sampler *Sampler
	// Repeats reports whether observed points may be suggested again: in a continuum,
	// and in a finite space whose evaluations are known to be noisy.
	Repeats bool
	// Remaining lists the points that can still be suggested, in the space's order, if
	// the space is finite and small enough to be enumerated; otherwise it is nil.
	Remaining []study.Point
}

// Extend adds the points that next chooses to a batch of this request, up to n of them in
// all, and counts for each how many points are pending before it. It ends with the first
// error of next, and once ctx has ended and the batch has a point.
func (r *Request) Extend(ctx context.Context, batch []Suggestion, n int, next func() (Suggestion, error)) ([]Suggestion, error) {
	batch = slices.Grow(batch, max(0, n-len(batch)))
	for len(batch) < n && (len(batch) == 0 || ctx.Err() == nil) {
		s, err := next()
		if err != nil {
			return batch, err
		}
		s.Reasons.Pending = len(r.Pending) + len(batch)
		batch = append(batch, s)
	}
	return batch, nil
}

// Draw is Extend for n points of a stream, with where they come from.
func (r *Request) Draw(ctx context.Context, n int, stream Stream, source Source, note string) ([]Suggestion, error) {
	return r.Extend(ctx, nil, n, func() (Suggestion, error) {
		point, err := r.Sampler.Draw(stream)
		if err != nil {
			return Suggestion{}, err
		}
		r.Sampler.MarkTaken(point)
		return Suggestion{Point: point, Source: source, Reasons: Reasons{Note: note}}, nil
	})
}

// Proposer is the algorithm of an optimiser: it picks points. Guard adds what every
// optimiser must ensure.
type Proposer interface {
	// Propose returns up to r.N suggestions and the next state, under the conditions of
	// Optimizer.Suggest. The guard replaces points that may not be suggested and adds
	// missing ones.
	Propose(ctx context.Context, r *Request) ([]Suggestion, State, error)
}

// Guard turns an algorithm into an optimiser. It ensures for every suggestion: the
// study file's initial points come first, one for each of the first trials, with
// partial ones completed; a point belongs to the space and satisfies the constraints;
// it does not duplicate a pending one. A finite space never repeats a point and ends
// with ErrExhausted, unless evaluations are known to be noisy, because two evaluations
// of a point differed or because the algorithm's method Noisy reports so; then
// suggestions marked Repeat pass. Before it ends, the algorithm's method Doubt may have a point evaluated
// again, to find out whether evaluations are noisy. If ctx ends while the algorithm works, the answer is
// what it has proposed by then. The result is a Recommender, or a Recommender and a Forecaster, if the algorithm is one.
func Guard(p Proposer) Optimizer {
	g := &guard{algorithm: p}
	r, recommends := p.(Recommender)
	f, forecasts := p.(Forecaster)
	switch {
	case recommends && forecasts:
		return struct {
			*guard
			Recommender
			Forecaster
		}{g, r, f}
	case recommends:
		return struct {
			*guard
			Recommender
		}{g, r}
	}
	return g
}

// doubter is an algorithm that may want to see a point evaluated again when all have been evaluated.
type doubter interface {
	// Doubt returns a suggestion marked Repeat; false if the space is exhausted.
	Doubt(ctx context.Context, r *Request) (Suggestion, bool)
}

// GuardBlind is Guard for an algorithm whose suggestions do not depend on
// observations; the result is a Blind.
func GuardBlind(p Proposer) Optimizer { return blindGuard{&guard{algorithm: p}} }

type blindGuard struct{ *guard }

// Blind marks the type: see the interface.
func (blindGuard) Blind() {}

type guard struct {
	algorithm Proposer
	// last caches what was computed from the latest space; a space is immutable.
	last atomic.Pointer[compiled]
}

// compiled is what the guard derives from a space.
type compiled struct {
	space    *space.Space
	encoding *Encoding
	all      []study.Point // all feasible points, nil if there are too many
	keys     []string      // of all, in the same order
}

var _ Optimizer = (*guard)(nil)

func (g *guard) compile(space *space.Space) *compiled {
	if c := g.last.Load(); c != nil && c.space == space {
		return c
	}
	c := &compiled{space: space, encoding: NewEncoding(space)}
	if size, finite := space.Size(); finite && size <= maxSize {
		if points, ok := space.Enumerate(MaxEnumerated); ok {
			c.all = append([]study.Point{}, points...)
			for _, p := range points {
				c.keys = append(c.keys, KeyOf(c.encoding.Encode(p)))
			}
		}
	}
	g.last.Store(c)
	return c
}

// Suggest implements Optimizer.
func (g *guard) Suggest(ctx context.Context, p *Problem, state State, n int, rng *rand.Rand) ([]Suggestion, State, error) {
	if err := ctx.Err(); err != nil {
		return nil, state, err
	}
	if n <= 0 {
		return nil, state, nil
	}
	c := g.compile(p.Space)
	used := newTaken(p, c.encoding)
	r := &Request{Problem: p, State: state, N: n, Rand: rng, Encoding: c.encoding}
	r.Sampler = &Sampler{encoding: c.encoding, taken: used, all: c.all, keys: c.keys, seeds: seeds(p), rng: rng}
	r.Repeats = !c.encoding.Discrete() || g.noisy(p, c.encoding)
	if c.all != nil {
		r.Remaining = r.Sampler.remaining()
		if !r.Repeats {
			r.N = min(n, len(r.Remaining))
		}
		if r.N == 0 {
			return g.doubt(ctx, r, ErrExhausted)
		}
	}
	batch, next, err := g.fill(ctx, r)
	if len(batch) == 0 && errors.Is(err, ErrExhausted) && c.encoding.Discrete() { // it is too large to know before
		return g.doubt(ctx, r, err)
	}
	if err != nil && (len(batch) == 0 || !isEnd(err) && ctx.Err() == nil) {
		return nil, state, err
	}
	return batch, next, nil
}

// doubt ends a finite space with an error, unless the algorithm wants to see a point again.
func (g *guard) doubt(ctx context.Context, r *Request, exhausted error) ([]Suggestion, State, error) {
	if a, ok := g.algorithm.(doubter); ok {
		if again, ok := a.Doubt(ctx, r); ok {
			return []Suggestion{again}, r.State, nil
		}
	}
	return nil, r.State, exhausted
}

// noisy reports whether evaluations are known to be noisy.
func (g *guard) noisy(p *Problem, encoding *Encoding) bool {
	if a, ok := g.algorithm.(interface{ Noisy() bool }); ok && a.Noisy() {
		return true
	}
	first := make(map[string]*Observation, len(p.Observations))
	for i := range p.Observations {
		o := &p.Observations[i]
		if o.Outcome != OutcomeCompleted {
			continue
		}
		key := KeyOf(encoding.Encode(o.At()))
		before := first[key]
		if before == nil {
			first[key] = o
		} else if differ(before.Values, o.Values) || differ(before.Excess, o.Excess) {
			return true
		}
	}
	return false
}

// differ reports whether two evaluations of a point differ in an objective, or in the excess over a limit.
func differ(a, b []float64) bool {
	for k := range min(len(a), len(b)) {
		if Differ(a[k], b[k]) {
			return true
		}
	}
	return false
}

// sameValue is the relative difference that two evaluations of a deterministic program
// may have: sums in another order differ in the last bits.
const sameValue = 1e-10

// Differ reports whether two values of one point differ by more than a deterministic
// program's can.
func Differ(a, b float64) bool {
	return math.Abs(a/2-b/2) > sameValue/2*max(1, math.Abs(a), math.Abs(b)) // halved to avoid overflow
}

func ended(ctx context.Context) bool { return ctx.Err() != nil }

// isEnd reports whether err means that there are no further points. It is not an error
// for the points that were found.
func isEnd(err error) bool { return errors.Is(err, ErrExhausted) || errors.Is(err, ErrNoFeasible) }

// fill returns the initial points that are due and lets the algorithm add the others.
func (g *guard) fill(ctx context.Context, r *Request) ([]Suggestion, State, error) {
	batch := r.initial()
	if len(batch) == r.N {
		return batch, r.State, nil
	}
	return g.propose(ctx, r, batch)
}

// propose lets the algorithm extend the batch to r.N points, and replaces those that
// may not be suggested.
func (g *guard) propose(ctx context.Context, r *Request, batch []Suggestion) ([]Suggestion, State, error) {
	wanted, before := r.N, r.Sampler.taken
	problem := *r.Problem
	problem.First += len(batch)
	problem.Pending = append([]Pending{}, r.Pending...)
	for i, s := range batch {
		problem.Pending = append(problem.Pending, Pending{Trial: r.First + i, Point: s.Point})
	}
	r.Problem, r.Asked, r.N = &problem, &problem, wanted-len(batch)
	if len(batch) > 0 {
		r.Remaining = r.Sampler.remaining()
	}
	r.Sampler.taken = before.fork()
	told := 0
	if a, ok := g.algorithm.(foreseer); ok && a.Foresees() {
		told = r.foreseen()
	}
	proposed, state, err := g.algorithm.Propose(ctx, r)
	for i := range proposed {
		proposed[i].Reasons.Pending += told
	}
	if err != nil && (len(proposed) == 0 || !isEnd(err)) {
		return batch, r.State, err
	}
	if len(state) > MaxStateSize {
		return nil, r.State, fmt.Errorf("the optimiser's state has %d bytes, more than %d", len(state), MaxStateSize)
	}
	r.Sampler.taken = before
	for i := 0; len(batch) < wanted; i++ {
		if i >= len(proposed) && len(batch) > 0 && ended(ctx) {
			break // the points of a batch are few
		}
		if i < len(proposed) && r.Space.Check(proposed[i].Point) == nil && (proposed[i].Repeat && r.Repeats || !before.has(proposed[i].Point)) {
			before.add(proposed[i].Point)
			batch = append(batch, proposed[i])
			continue
		}
		point, err := r.Sampler.Draw(Uniform(r.Rand))
		if err != nil {
			return batch, state, err
		}
		before.add(point)
		batch = append(batch, Suggestion{Point: point, Source: SourceRandom, Reasons: Reasons{
			Pending: told + len(r.Pending) + len(batch), Note: "drawn at random: the algorithm had no other point",
		}})
	}
	return batch, state, nil
}

// initial returns the study file's initial points that are due: the point of
// trial k is the file's k-th.
func (r *Request) initial() []Suggestion {
	var batch []Suggestion
	listed := r.Space.Initial()
	for r.First+len(batch) <= len(listed) && len(batch) < r.N {
		s, err := r.initialPoint(listed[r.First+len(batch)-1], r.First+len(batch))
		if err != nil {
			break
		}
		s.Reasons.Pending = len(r.Pending) + len(batch)
		r.Sampler.MarkTaken(s.Point)
		batch = append(batch, s)
	}
	return batch
}

// initialPoint makes a suggestion of the k-th listed point. If the point was evaluated
// already or cannot be completed, it suggests a random point and notes so: trial k
// always gets a point.
func (r *Request) initialPoint(listed study.Point, k int) (Suggestion, error) {
	s := Suggestion{Point: listed, Source: SourceInitial}
	s.Reasons.Note = fmt.Sprintf("initial point %d of the study", k)
	whole := r.Space.Check(listed) == nil
	if whole && !(r.Encoding.Discrete() && r.Sampler.Taken(listed)) {
		return s, nil
	}
	err := ErrExhausted
	if !whole {
		s.Point, err = r.Sampler.complete(Uniform(r.Rand), listed)
	}
	if err != nil {
		s.Source = SourceRandom
		s.Reasons.Note = fmt.Sprintf("drawn at random: initial point %d of the study was evaluated already or cannot be completed", k)
		s.Point, err = r.Sampler.Draw(Uniform(r.Rand))
	}
	return s, err
}

// seeds are the latest points of a problem, which are feasible.
func seeds(p *Problem) []study.Point {
	points := make([]study.Point, 0, min(repairSeeds, len(p.Observations)+len(p.Pending)))
	for i := len(p.Pending) - 1; i >= 0 && len(points) < repairSeeds; i-- {
		points = append(points, p.Pending[i].Point)
	}
	for i := len(p.Observations) - 1; i >= 0 && len(points) < repairSeeds; i-- {
		points = append(points, p.Observations[i].At())
	}
	return points
}
