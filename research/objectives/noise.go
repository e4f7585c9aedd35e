package main

import (
	"context"
	"fmt"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/study"
)

// blur adds noise to the values of a trial, the same for every algorithm with this seed.
func (s setting) blur(g game, p *optimizer.Problem, trial int, values study.Values) {
	rng := optimizer.NewRand(p.Seed+1<<32, trial)
	for k := range values {
		if s.noise > 0 {
			values[k] += s.noise * g.noise[k] * rng.NormFloat64()
		}
	}
}

// recommended returns the trials of the front that an algorithm recommends, or of the front of
// noisy values if it has no model, with their true values.
func recommended(play *session.Session, g game) ([]optimizer.Observation, error) {
	r, err := play.Recommend(context.Background())
	if err != nil {
		return nil, err
	}
	if r == nil {
		r = play.Problem.Best()
	}
	on := map[int]bool{}
	for _, e := range r.Front {
		on[e.Trial] = true
	}
	var found []optimizer.Observation
	for _, observed := range play.Problem.Observations {
		if on[observed.Trial] {
			observed.Values, observed.Excess = g.value(g.at(observed.Point))
			found = append(found, observed)
		}
	}
	return found, nil
}

// at returns the coordinates of a point.
func (g *game) at(point study.Point) []float64 {
	x := make([]float64, len(g.lower))
	for i := range x {
		x[i] = point[fmt.Sprintf("x%d", i+1)].(float64)
	}
	return x
}
