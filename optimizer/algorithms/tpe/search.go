package tpe

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// The limits on draws that may not be suggested: a group's draws, and whole points.
const (
	drawTries  = 1000
	pointTries = 4
)

// point is an evaluated or pending point with its place in the unit cube.
type point struct {
	x     []float64
	point study.Point
}

// search chooses the points of a request.
type search struct {
	r          *optimizer.Request
	history    *history // of the observations
	candidates int
	isGood     []bool  // by observation
	open       []point // pending ones and those that were chosen, the oldest first
	// good and bad are the densities of each group; nil until they are needed, and bad again
	// after a point was chosen.
	good, bad []*parzen
}

// newSearch splits the observations: the best tenth is good, the rest bad, and so are failed
// evaluations and pending points.
func newSearch(r *optimizer.Request, h *history, candidates int) *search {
	s := &search{
		r: r, history: h, candidates: candidates, isGood: make([]bool, len(r.Observations)),
		good: make([]*parzen, len(h.tables)), bad: make([]*parzen, len(h.tables)),
	}
	h.add(r.Observations)
	for i := range split(r) {
		s.isGood[i] = true
	}
	for _, p := range r.Pending {
		s.add(p.Point)
	}
	return s
}

// add counts a point as bad.
func (s *search) add(p study.Point) {
	s.open = append(s.open, point{x: s.r.Encoding.Encode(p), point: p})
	clear(s.bad)
}

// goodOf returns the density of the good points in the i-th group.
func (s *search) goodOf(i int) *parzen {
	if s.good[i] == nil {
		s.good[i] = s.history.tables[i].goodOnes(s.isGood, len(s.r.Objectives) > 0)
	}
	return s.good[i]
}

// badOf returns the density of the bad points in the i-th group.
func (s *search) badOf(i int) *parzen {
	if s.bad[i] == nil {
		t := s.history.tables[i]
		s.bad[i] = t.badOnes(s.isGood, t.of(s.open))
	}
	return s.bad[i]
}

// next chooses a point, and counts it as bad for those after it.
func (s *search) next() (optimizer.Suggestion, error) {
	chosen, ratio, ok := s.choose()
	for try := 1; !ok && try < pointTries; try++ {
		chosen, ratio, ok = s.choose()
	}
	suggestion := optimizer.Suggestion{Point: chosen, Source: optimizer.SourceModel, Reasons: optimizer.Reasons{
		Acquisition: map[string]float64{"logratio": ratio}, Note: "the likeliest to be among the best tenth, of draws from their density",
	}}
	if !ok {
		drawn, err := s.r.Sampler.Draw(s.draw)
		if err != nil {
			return optimizer.Suggestion{}, err
		}
		suggestion.Point = drawn
		suggestion.Reasons = optimizer.Reasons{Note: "drawn from the density of the best tenth"}
	}
	s.r.Sampler.MarkTaken(suggestion.Point)
	s.add(suggestion.Point)
	return suggestion, nil
}

// draw is the stream of draws from the density of the good points, without regard to
// the bad ones.
func (s *search) draw(x []float64) {
	for i, g := range s.history.tables {
		row := make([]float64, len(g.at))
		s.goodOf(i).sample(row, s.r.Rand)
		g.put(x, row)
	}
}

// choose goes through the groups, and takes for each the draw with the largest ratio.
// ok is false if a group had no draw that may be suggested; ratio is the logarithm of
// the product of the ratios.
func (s *search) choose() (chosen study.Point, ratio float64, ok bool) {
	x := make([]float64, s.r.Encoding.Dim())
	for i, g := range s.history.tables {
		if _, active := s.r.Encoding.Decode(x)[g.name]; !active {
			continue
		}
		row, logs, found := s.pick(x, i)
		if !found {
			return nil, 0, false
		}
		g.put(x, row)
		ratio += logs
	}
	return s.r.Encoding.Decode(x), ratio, !math.IsInf(ratio, 0) && !math.IsNaN(ratio)
}

// pick returns the best draw for the i-th group, given the coordinates x of the groups
// before it. It computes all ratios roughly, and then those that may be the largest.
func (s *search) pick(x []float64, i int) (best []float64, ratio float64, found bool) {
	good, bad := s.goodOf(i), s.badOf(i)
	terms := resized(s.history.terms, len(s.history.known)+len(s.open)+1)
	s.history.terms = terms
	rows := s.drawn(x, i)
	rough, most := make([]float64, len(rows)), math.Inf(-1)
	for k, row := range rows {
		rough[k] = good.roughly(row, terms) - bad.roughly(row, terms)
		if rough[k] > most {
			most = rough[k]
		}
	}
	for k, row := range rows {
		if rough[k] < most-2*near || slices.Equal(row, best) {
			continue
		}
		logs := good.logDensity(row, terms) - bad.logDensity(row, terms)
		if !found || logs > ratio {
			best, ratio, found = row, logs, true
		}
	}
	return best, ratio, found
}

// drawn returns draws for the i-th group that may be suggested, as many as there are candidates if
// they can be found.
func (s *search) drawn(x []float64, i int) (rows [][]float64) {
	g := s.history.tables[i]
	row := make([]float64, len(g.at))
	for try := 0; try < drawTries && len(rows) < s.candidates; try++ {
		s.goodOf(i).sample(row, s.r.Rand)
		g.put(x, row)
		if !s.allowed(x, i) {
			continue
		}
		s.r.Encoding.Project(x)
		for k, at := range g.at {
			row[k] = x[at]
		}
		rows = append(rows, slices.Clone(row))
	}
	return rows
}

// allowed reports whether the point at x satisfies the constraints, as far as it is
// decided by the groups up to the i-th, and whether it may be suggested if no later group
// is active.
func (s *search) allowed(x []float64, i int) bool {
	p := s.r.Encoding.Decode(x)
	whole := true
	for _, later := range s.history.tables[i+1:] {
		if _, active := p[later.name]; !active {
			continue
		}
		whole = false
		for _, c := range later.columns {
			delete(p, c.Parameter.Name)
		}
	}
	return s.r.Space.Feasible(p) && !(whole && s.r.Sampler.TakenAt(s.r.Encoding.Encode(p)))
}
