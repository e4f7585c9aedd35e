package hebo

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/surrogate"
	"github.com/fantasia-hpo/fantasia/study"
)

// A search has contracted when at least half of its latest points lie within
// samePoint of an earlier one in every coordinate: with noise, such points are
// evaluations of one place, and a model that is wrong elsewhere never finds out.
const (
	latestPoints = 16
	samePoint    = 0.05
)

// trail holds the coordinates of a study's points, pending and picked ones last.
// The nil trail is that of a search that does not escape.
type trail struct {
	points [][]float64
	near   []bool // of the latest points, whether an earlier one is the same
}

// newTrail returns nil where points are not to be drawn at random; noise is what is
// known of it.
func (s *search) newTrail(noise surrogate.Noise, batch []optimizer.Suggestion) *trail {
	if !s.options.Escape || s.r.Encoding.Discrete() || noise != surrogate.Noisy {
		return nil
	}
	var points []study.Point
	for _, o := range s.r.Observations {
		points = append(points, o.Point)
	}
	for _, p := range s.r.Pending {
		points = append(points, p.Point)
	}
	for _, b := range batch {
		points = append(points, b.Point)
	}
	t := &trail{}
	for i, p := range points {
		x := s.r.Encoding.Encode(p)
		if i < len(points)-latestPoints {
			t.points = append(t.points, x)
			continue
		}
		t.add(x)
	}
	return t
}

// add adds a point to the end.
func (t *trail) add(x []float64) {
	if t == nil {
		return
	}
	same := func(y []float64) bool { return floats.Distance(x, y, math.Inf(1)) <= samePoint }
	t.near = append(t.near, slices.ContainsFunc(t.points, same))
	t.points = append(t.points, x)
}

// contracted reports whether the search has.
func (t *trail) contracted() bool {
	if t == nil || len(t.near) < latestPoints {
		return false
	}
	count := 0
	for _, near := range t.near[len(t.near)-latestPoints:] {
		if near {
			count++
		}
	}
	return 2*count >= latestPoints
}

// mayEscape reports whether trial n may be drawn at random after the given number
// that were.
func mayEscape(n, escapes int) bool { return n%2 == 0 && fewEscapes(n, escapes) }

// fewEscapes reports whether fewer than 2√n of n trials were drawn at random, so that
// their share falls like 1/√n: what many random points did not find, another one hardly
// will.
func fewEscapes(n, escapes int) bool { return escapes*escapes < 4*n }

// escape draws every second point at random, from the priors of parameters where
// there are any, while the search has contracted and not too many were; ok is false
// for the others.
func (s *search) escape() (suggestion optimizer.Suggestion, ok bool) {
	if !s.trail.contracted() || !mayEscape(s.first+s.picked, s.memory.Escapes) {
		return suggestion, false
	}
	uniform := optimizer.Uniform(s.r.Rand)
	point, err := s.r.Sampler.Draw(func(x []float64) {
		uniform(x)
		s.beliefs.draw(x)
	})
	if err != nil {
		return suggestion, false
	}
	drawn, found := s.bestOf([]place{{point, s.r.Encoding.Encode(point)}}, math.Inf(-1))
	if !found {
		return suggestion, false // the model has no value for it
	}
	s.memory.Escapes++
	suggestion = s.pick(drawn)
	suggestion.Reasons.Note = "drawn at random: the latest points were practically the same ones"
	return suggestion, true
}
