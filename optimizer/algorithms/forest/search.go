package forest

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/study"
)

// The effort of a search: points drawn at random, the best of which a local search
// improves, together with the best evaluated ones; the largest number of its steps; and how
// many neighbours along numeric parameters a step looks at, in all and along each of them,
// at normal distances.
const (
	candidates    = 2000
	starts        = 5
	maxSteps      = 20
	maxNeighbours = 40
	neighbours    = 4
	distance      = 0.2
)

// search chooses the points of a request.
type search struct {
	ctx     context.Context
	r       *optimizer.Request
	options Options
	coder   *coder
	x       [][]float64 // observed points, then pending ones
	y       []float64
	best    float64 // the least outcome observed
	order   []int   // the observations, the best first
	model   *model
	listed  []listed // of a small finite space; nil until needed
}

func newSearch(ctx context.Context, r *optimizer.Request, o Options) *search {
	s := &search{ctx: ctx, r: r, options: o, coder: newCoder(r.Encoding), y: outcomes(r.Problem)}
	s.x = s.coder.rows(r.Problem)
	s.best = slices.Min(s.y)
	s.order = make([]int, len(s.y))
	floats.ArgsortStable(slices.Clone(s.y), s.order)
	s.fit()
	for _, p := range r.Pending {
		s.add(p.Point)
	}
	if len(r.Pending) > 0 {
		s.fit()
	}
	return s
}

func (s *search) fit() {
	s.model = newModel(s.x, s.y, s.coder.features, s.options.Trees, s.options.growth(), s.r.Rand)
}

// add counts a point as evaluated to what the forest predicts.
func (s *search) add(p study.Point) {
	row := s.coder.row(p)
	mean, _ := s.model.predict(row)
	s.x, s.y = append(s.x, row), append(s.y, mean)
}

// pend adds a point and grows the forest again.
func (s *search) pend(p study.Point) {
	s.add(p)
	s.fit()
}

// candidate is a point with its coordinates and its rating.
type candidate struct {
	point study.Point
	x     []float64
	value float64 // log expected improvement
}

func (s *search) rate(p study.Point, x []float64) candidate {
	return candidate{point: p, x: x, value: s.improvement(s.coder.rowAt(p, x))}
}

// improvement returns the logarithm of the expected improvement of a row.
func (s *search) improvement(row []float64) float64 {
	mean, variance := s.model.predict(row)
	return acquisition.LogEI(mean, math.Sqrt(variance), s.best)
}

// listed is a point of a small finite space.
type listed struct {
	point  study.Point
	x, row []float64
}

// enumerated returns the points of a small finite space that remain.
func (s *search) enumerated() []listed {
	if s.listed == nil {
		s.listed = make([]listed, len(s.r.Remaining))
		for i, p := range s.r.Remaining {
			x := s.r.Encoding.Encode(p)
			s.listed[i] = listed{point: p, x: x, row: s.coder.rowAt(p, x)}
		}
	}
	return s.listed
}

// at decodes x and rates the point; ok is false if it must not be suggested.
func (s *search) at(x []float64) (c candidate, ok bool) {
	p := s.r.Encoding.Decode(x)
	if !s.r.Space.Feasible(p) {
		return c, false
	}
	exact := s.r.Encoding.Encode(p)
	if s.r.Sampler.TakenAt(exact) {
		return c, false
	}
	return s.rate(p, exact), true
}

// next chooses a point.
func (s *search) next() (optimizer.Suggestion, error) {
	if s.r.Rand.Float64() < s.options.Random {
		return s.random("drawn at random, against blind spots of the forest")
	}
	best, found := s.maximise()
	if !found {
		return s.random("drawn at random: the search found no point that may be suggested")
	}
	s.r.Sampler.MarkTaken(best.point)
	s.pend(best.point)
	reasons := optimizer.Reasons{Note: "largest expected improvement by the forest"}
	if !math.IsInf(best.value, 0) {
		reasons.Acquisition = map[string]float64{"logei": best.value}
	}
	return optimizer.Suggestion{Point: best.point, Source: optimizer.SourceModel, Reasons: reasons}, nil
}

func (s *search) random(note string) (optimizer.Suggestion, error) {
	p, err := s.r.Sampler.Draw(optimizer.Uniform(s.r.Rand))
	if err != nil {
		return optimizer.Suggestion{}, err
	}
	s.r.Sampler.MarkTaken(p)
	s.pend(p)
	return optimizer.Suggestion{Point: p, Source: optimizer.SourceRandom, Reasons: optimizer.Reasons{Note: note}}, nil
}

// maximise returns the best point that may be suggested: of all of them, if the space is
// small, else of a local search.
func (s *search) maximise() (best candidate, found bool) {
	consider := func(c candidate) {
		if !found || c.value > best.value {
			best, found = c, true
		}
	}
	if s.r.Remaining != nil {
		// From a random place on, so that ties are broken at random.
		all := s.enumerated()
		for i, from := 0, s.r.Rand.IntN(max(1, len(all))); i < len(all); i++ {
			p := &all[(from+i)%len(all)]
			if s.r.Sampler.TakenAt(p.x) {
				continue
			}
			consider(candidate{point: p.point, x: p.x, value: s.improvement(p.row)})
		}
		return best, found
	}
	var drawn []candidate
	x := make([]float64, s.r.Encoding.Dim())
	uniform := optimizer.Uniform(s.r.Rand)
	for range candidates {
		uniform(x)
		if c, ok := s.at(x); ok {
			drawn = append(drawn, c)
		}
	}
	slices.SortStableFunc(drawn, func(a, b candidate) int { return cmp.Compare(b.value, a.value) })
	for _, c := range drawn[:min(len(drawn), starts)] {
		consider(s.climb(c))
	}
	for _, i := range s.order[:min(len(s.order), starts)] {
		if s.ctx.Err() != nil && found {
			break
		}
		p := s.r.Observations[i].At()
		// The point itself has been evaluated: begin at its best neighbour.
		if c, ok := s.step(candidate{point: p, x: s.r.Encoding.Encode(p), value: math.Inf(-1)}); ok {
			consider(s.climb(c))
		}
	}
	return best, found
}

// climb moves from a point to its best neighbour, as long as that is better.
func (s *search) climb(from candidate) candidate {
	for range maxSteps {
		next, better := s.step(from)
		if !better || s.ctx.Err() != nil {
			break
		}
		from = next
	}
	return from
}

// step returns the best neighbour of a point that may be suggested: one that differs in
// one active parameter, by a choice or by a step along a number. better is false if none is
// better than the point.
func (s *search) step(from candidate) (best candidate, better bool) {
	best = from
	x := slices.Clone(from.x)
	for i, c := range s.r.Encoding.Columns() {
		value, active := from.point[c.Parameter.Name]
		if !active {
			continue
		}
		for _, u := range s.moves(c, from.x[i]) {
			x[i] = u
			if c.Parameter.FromUnit(u) == value {
				continue
			}
			if near, ok := s.at(x); ok && near.value > best.value {
				best, better = near, true
			}
		}
		x[i] = from.x[i]
	}
	return best, better
}

// moves returns the coordinates to try beside u.
func (s *search) moves(c optimizer.Column, u float64) []float64 {
	var moves []float64
	if c.Categorical() && c.Levels <= maxChoices || c.Levels > 0 && c.Levels <= neighbours+1 {
		for k := range c.Levels {
			moves = append(moves, c.Parameter.ToUnit(c.Parameter.At(k)))
		}
		return moves
	}
	for range max(1, min(neighbours, maxNeighbours/s.r.Encoding.Dim())) {
		moves = append(moves, min(1, max(0, u+distance*s.r.Rand.NormFloat64())))
	}
	if low, high := c.Bin(u); c.Levels > 0 { // the values next to it
		moves = append(moves, max(0, low-(high-low)*1e-3), min(1, high+(high-low)*1e-3))
	}
	return moves
}
