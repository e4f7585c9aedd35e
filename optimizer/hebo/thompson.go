package hebo

import (
	"math"

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
	places []place
	values *mat.Dense // one column per function
	logP   []float64  // log probabilities that the places' evaluations complete
	prior  []float64  // the beliefs' contribution to the places' values
	used   int        // functions whose minimum has been picked
}

// sample returns the place of the minimum of one function drawn from the posterior
// (Thompson sampling).
func (s *search) sample() (best spot, ok bool) {
	for range 2 {
		if s.sampled == nil || s.sampled.used == sampledAtOnce {
			if s.sampled = s.drawFunctions(); s.sampled == nil {
				return best, false
			}
		}
		d := s.sampled
		best.value = math.Inf(-1)
		for i, p := range d.places {
			if s.r.Sampler.TakenAt(p.x) {
				continue
			}
			if v := s.chance.ofReward(-d.values.At(i, d.used), d.logP[i]) + d.prior[i]; v > best.value {
				best = spot{place: p, value: v, why: lowestDrawn}
			}
		}
		d.used++
		if !math.IsInf(best.value, -1) {
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
	for _, i := range s.r.Rand.Perm(len(s.places)) {
		if len(d.places) < sampledAmong && !s.r.Sampler.TakenAt(s.places[i].x) {
			d.places = append(d.places, s.places[i])
		}
	}
	if len(d.places) == 0 {
		return nil
	}
	z := mat.NewDense(len(d.places), sampledAtOnce, nil)
	z.Apply(func(int, int, float64) float64 { return s.r.Rand.NormFloat64() }, z)
	x := rows(d.places)
	var err error
	if d.values, err = s.model.Sample(x, z); err != nil {
		return nil
	}
	d.logP, d.prior = s.chance.log(x), s.believed(d.places)
	return d
}
