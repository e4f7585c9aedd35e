package turbo

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/loop"
)

// The candidates over which a function is drawn: a number for each column, as in the paper,
// within bounds. A draw costs their number to the third power, so the upper bound is lower
// than the paper's 5,000.
const (
	eachColumn      = 100
	leastCandidates = 200
	mostCandidates  = 1000
)

// sampler picks points by Thompson sampling in a trust region.
type sampler struct {
	loop   *loop.Loop
	region *loop.Region
	why    string

	places []loop.Place
	values *mat.Dense // a column for each drawn function
	logP   []float64  // log probabilities that the places' evaluations complete
	prior  []float64  // what the parameters' priors contribute to the places' values
	used   int        // functions whose minimum was picked
}

// sample is a strategy that picks the lowest point of a function drawn from the model. It
// leaves the choice to others where no candidate is left in the region.
func (s *sampler) sample(ctx context.Context, _ *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
	if s.places == nil && !s.draw(ctx) {
		return suggestion, false
	}
	best, at := math.Inf(-1), -1
	_, functions := s.values.Dims()
	column := s.used % functions
	for i, p := range s.places {
		if s.loop.Request.Sampler.TakenAt(p.X) {
			continue
		}
		if v := s.loop.Chance.OfReward(-s.values.At(i, column), s.logP[i]) + s.prior[i]; v > best {
			best, at = v, i
		}
	}
	s.used++
	if at < 0 {
		return suggestion, false
	}
	spot := loop.Spot{Place: s.places[at], Value: best, Why: s.why}
	return s.loop.Pick(spot), true
}

// draw draws a function for each point of the request over candidates of the region. It
// reports whether there are any.
func (s *sampler) draw(ctx context.Context) bool {
	r := s.loop.Request
	count := min(max(leastCandidates, eachColumn*r.Encoding.Dim()), mostCandidates)
	if ctx.Err() != nil {
		count = leastCandidates
	}
	places := loop.Gather(nil, r, count, s.region.Stream(r), s.loop.Taken)
	if len(places) == 0 {
		return false
	}
	x := loop.Rows(places)
	z := mat.NewDense(len(places), r.N, nil)
	z.Apply(func(int, int, float64) float64 { return r.Rand.NormFloat64() }, z)
	values, err := s.loop.Main.Model.Sample(x, z)
	if err != nil {
		return false
	}
	s.places, s.values = places, values
	s.logP, s.prior = s.loop.Chance.Log(x), s.loop.Believed(places)
	return true
}
