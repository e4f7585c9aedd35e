package hebo

import "github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"

// The number of candidates over which Thompson sampling draws functions, and how many
// functions it draws at once.
const (
	sampledAmong  = 300
	sampledAtOnce = 8
)

// lowestDrawn is the reason given for a point of Thompson sampling.
const lowestDrawn = "the lowest of a function drawn from the model"

// sample returns the place of the minimum of one function drawn from the posterior
// (Thompson sampling).
func (s *search) sample() (best loop.Spot, ok bool) {
	for range 2 {
		if s.drawn == nil || s.drawn.Left() == 0 {
			if s.drawn = s.Draw(s.some(), sampledAtOnce); s.drawn == nil {
				return best, false
			}
		}
		if best, ok = s.drawn.Lowest(); ok {
			best.Why = lowestDrawn
			return best, true
		}
		s.drawn = nil // all of its places are taken; others may be left
	}
	return best, false
}

// some returns some of the remaining places.
func (s *search) some() (places []loop.Place) {
	for _, i := range s.Request.Rand.Perm(len(s.Places)) {
		if len(places) < sampledAmong && !s.Request.Sampler.TakenAt(s.Places[i].X) {
			places = append(places, s.Places[i])
		}
	}
	return places
}
