package hebo

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/study"
)

// A search has contracted when at least half of its latest points lie within samePoint
// of an earlier one in every coordinate. With noise, such points repeat one place, and
// a model that is wrong elsewhere never finds out.
const (
	latestPoints = 16
	samePoint    = 0.05
)

// trail holds the coordinates of a study's points, pending and picked ones last. It is
// nil if the search does not escape.
type trail struct {
	points [][]float64
	near   []bool // for each latest point, whether an earlier one is close
}

// newTrail returns nil if no points are to be drawn at random. noise is what is known
// of the noise.
func (s *search) newTrail(noise surrogate.Noise, batch []optimizer.Suggestion) *trail {
	if !s.options.Escape || s.Request.Encoding.Discrete() || noise != surrogate.Noisy {
		return nil
	}
	var points []study.Point
	for _, o := range s.Request.Observations {
		points = append(points, o.Point)
	}
	for _, p := range s.Request.Pending {
		points = append(points, p.Point)
	}
	for _, b := range batch {
		points = append(points, b.Point)
	}
	t := &trail{}
	for i, p := range points {
		x := s.Request.Encoding.Encode(p)
		if i < len(points)-latestPoints {
			t.points = append(t.points, x)
			continue
		}
		t.add(x)
	}
	return t
}

// add appends a point.
func (t *trail) add(x []float64) {
	if t == nil {
		return
	}
	same := func(y []float64) bool { return floats.Distance(x, y, math.Inf(1)) <= samePoint }
	t.near = append(t.near, slices.ContainsFunc(t.points, same))
	t.points = append(t.points, x)
}

// contracted reports whether the search has contracted.
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

// mayEscape reports whether trial n may be drawn at random after the given number of
// earlier escapes.
func mayEscape(n, escapes int) bool { return n%2 == 0 && fewEscapes(n, escapes) }

// fewEscapes reports whether fewer than 2√n of n trials were drawn at random. Their
// share falls like 1/√n: if many random points found nothing, another one rarely will.
func fewEscapes(n, escapes int) bool { return escapes*escapes < 4*n }

// escape draws every second point at random, from the parameters' priors if there are
// any, while the search has contracted and mayEscape allows it. Otherwise ok is false.
func (s *search) escape(context.Context, *loop.Turn) (suggestion optimizer.Suggestion, ok bool) {
	if !s.trail.contracted() || !mayEscape(s.First+s.Picked, s.memory.Escapes) {
		return suggestion, false
	}
	uniform := optimizer.Uniform(s.Request.Rand)
	point, err := s.Request.Sampler.Draw(func(x []float64) {
		uniform(x)
		s.Beliefs.Draw(x)
	})
	if err != nil {
		return suggestion, false
	}
	drawn := loop.Spot{Place: loop.Place{Point: point, X: s.Request.Encoding.Encode(point)}}
	if drawn.Value = s.Evaluate([]loop.Place{drawn.Place})[0]; !(drawn.Value > math.Inf(-1)) {
		return suggestion, false // the model has no value for it
	}
	s.memory.Escapes++
	suggestion = s.pick(drawn)
	suggestion.Reasons.Note = "drawn at random: the latest points were practically the same ones"
	return suggestion, true
}
