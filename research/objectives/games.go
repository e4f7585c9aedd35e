package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/study"
)

// fronts returns the functions of several objectives.
func fronts(reference bool) []game {
	var games []game
	for _, f := range testfunc.Vectors() {
		noise := f.Reference
		if strings.HasPrefix(f.Name, "zdt") {
			noise = []float64{1, 1} // the reference is far beyond the front
		}
		games = append(games, game{
			name: f.Name, lower: f.Lower, upper: f.Upper, noise: noise,
			aim: func(p *optimizer.Problem) {
				for k := range f.Reference {
					objective := study.Objective{Metric: fmt.Sprintf("f%d", k+1), Direction: study.Minimize}
					if reference {
						objective.Reference = &f.Reference[k]
					}
					p.Objectives = append(p.Objectives, objective)
				}
			},
			value: func(x []float64) (study.Values, []float64) { return f.Value(x), nil },
			missing: func(found []optimizer.Observation) float64 {
				var values [][]float64
				for _, o := range found {
					values = append(values, o.Values)
				}
				return f.Hypervolume - pareto.Hypervolume(values, f.Reference)
			},
		})
	}
	return games
}

// limited returns the functions with limits.
func limited() []game {
	var games []game
	for _, f := range testfunc.LimitedFunctions() {
		games = append(games, game{
			name: f.Name, lower: f.Lower, upper: f.Upper, step: f.Step,
			aim: func(p *optimizer.Problem) {
				_, excess := f.Value(f.Lower)
				for k := range excess {
					p.Limits = append(p.Limits, study.Limit{Metric: fmt.Sprintf("c%d", k+1), Max: new(0.0)})
				}
			},
			value: func(x []float64) (study.Values, []float64) {
				value, excess := f.Value(x)
				return study.Values{value}, excess
			},
			missing: func(found []optimizer.Observation) float64 {
				best := math.Inf(1)
				for _, o := range found {
					if o.Within() {
						best = min(best, o.Values.First())
					}
				}
				return best - f.Minimum
			},
		})
	}
	return games
}
