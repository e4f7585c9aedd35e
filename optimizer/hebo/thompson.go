package hebo

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer/loop"
	"gonum.org/v1/gonum/mat"
)

// The number of candidates over which Thompson sampling draws functions, and how many
// functions it draws at once.
const (
	sampledAmong  = 300
	sampledAtOnce = 8
)

// lowestDrawn is the reason given for a point of Thompson sampling.
const lowestDrawn = "the lowest of a function drawn from the model"

// sampled holds functions drawn from the posterior over some places.
type sampled struct {
	places []loop.Place
	values *mat.Dense // one column per function
	logP   []float64  // log probabilities that the places' evaluations complete
	prior  []float64  // the beliefs' contribution to the places' values
	used   int        // functions whose minimum has been picked
}

// sample returns the place of the minimum of one function drawn from the posterior
// (Thompson sampling).
func (s *search) sample() (best loop.Spot, ok bool) {
	for range 2 {
		if s.sampled == nil || s.sampled.used == sampledAtOnce {
			if s.sampled = s.drawFunctions(); s.sampled == nil {
				return best, false
			}
		}
		d := s.sampled
		best.Value = math.Inf(-1)
		for i, p := range d.places {
			if s.Request.Sampler.TakenAt(p.X) {
				continue
			}
			if v := s.Chance.OfReward(-d.values.At(i, d.used), d.logP[i]) + d.prior[i]; v > best.Value {
				best = loop.Spot{Place: p, Value: v, Why: lowestDrawn}
			}
		}
		d.used++
		if !math.IsInf(best.Value, -1) {
			return best, true
		}
		s.sampled = nil // all of its places are taken; others may be left
	}
	return best, false
}

// drawFunctions draws functions over some of the remaining places. It returns nil if
// there are none, or if the model does not allow it.
func (s *search) drawFunctions() *sampled {
	d := &sampled{}
	for _, i := range s.Request.Rand.Perm(len(s.Places)) {
		if len(d.places) < sampledAmong && !s.Request.Sampler.TakenAt(s.Places[i].X) {
			d.places = append(d.places, s.Places[i])
		}
	}
	if len(d.places) == 0 {
		return nil
	}
	z := mat.NewDense(len(d.places), sampledAtOnce, nil)
	z.Apply(func(int, int, float64) float64 { return s.Request.Rand.NormFloat64() }, z)
	x := loop.Rows(d.places)
	var err error
	if d.values, err = s.Main.Model.Sample(x, z); err != nil {
		return nil
	}
	d.logP, d.prior = s.Chance.Log(x), s.Believed(d.places)
	return d
}
