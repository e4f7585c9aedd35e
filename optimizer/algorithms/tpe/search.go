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
	groups     []*group
	candidates int
	good, bad  []point // the oldest first
	// densities holds a group's two densities; nil until they are needed, and again
	// after a point was added.
	densities map[*group][2]*parzen
	terms     []float64 // scratch
}

// newSearch splits the observations: the best tenth is good, the rest bad, and so are failed
// evaluations and pending points.
func newSearch(r *optimizer.Request, groups []*group, candidates int) *search {
	s := &search{r: r, groups: groups, candidates: candidates, densities: map[*group][2]*parzen{}}
	best := split(r)
	for i, o := range r.Observations {
		if p := (point{x: r.Encoding.Encode(o.Point), point: o.Point}); best[i] {
			s.good = append(s.good, p)
		} else {
			s.bad = append(s.bad, p)
		}
	}
	for _, p := range r.Pending {
		s.bad = append(s.bad, point{x: r.Encoding.Encode(p.Point), point: p.Point})
	}
	return s
}

// of returns the densities of a group: of the good points and of the bad ones.
func (s *search) of(g *group) [2]*parzen {
	d, known := s.densities[g]
	if !known {
		good, bad := g.of(s.good), g.of(s.bad)
		weights := ramp(len(good))
		if len(s.r.Objectives) > 0 { // early points of a front are as good as late ones
			weights = slices.Repeat([]float64{1}, len(good))
		}
		d = [2]*parzen{newParzen(g.columns, good, weights, true), newParzen(g.columns, bad, ramp(len(bad)), false)}
		s.densities[g] = d
	}
	return d
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
	s.r.Sampler.Take(suggestion.Point)
	s.bad = append(s.bad, point{x: s.r.Encoding.Encode(suggestion.Point), point: suggestion.Point})
	clear(s.densities)
	return suggestion, nil
}

// draw is the stream of draws from the density of the good points, without regard to
// the bad ones.
func (s *search) draw(x []float64) {
	for _, g := range s.groups {
		row := make([]float64, len(g.at))
		s.of(g)[0].sample(row, s.r.Rand)
		g.put(x, row)
	}
}

// choose goes through the groups, and takes for each the draw with the largest ratio.
// ok is false if a group had no draw that may be suggested; ratio is the logarithm of
// the product of the ratios.
func (s *search) choose() (chosen study.Point, ratio float64, ok bool) {
	x := make([]float64, s.r.Encoding.Dim())
	for i, g := range s.groups {
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
// before it.
func (s *search) pick(x []float64, i int) (best []float64, ratio float64, found bool) {
	g := s.groups[i]
	densities := s.of(g)
	if n := len(s.good) + len(s.bad) + 1; cap(s.terms) < n {
		s.terms = make([]float64, 0, 2*n)
	}
	row := make([]float64, len(g.at))
	for try, drawn := 0, 0; try < drawTries && drawn < s.candidates; try++ {
		densities[0].sample(row, s.r.Rand)
		g.put(x, row)
		if !s.allowed(x, i) {
			continue
		}
		s.r.Encoding.Settle(x)
		for k, at := range g.at {
			row[k] = x[at]
		}
		drawn++
		logs := densities[0].logDensity(row, s.terms) - densities[1].logDensity(row, s.terms)
		if !found || logs > ratio {
			best, ratio, found = append(best[:0], row...), logs, true
		}
	}
	return best, ratio, found
}

// allowed reports whether the point at x satisfies the constraints, as far as it is
// decided by the groups up to the i-th, and whether it may be suggested if no later group
// is active.
func (s *search) allowed(x []float64, i int) bool {
	p := s.r.Encoding.Decode(x)
	whole := true
	for _, later := range s.groups[i+1:] {
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
