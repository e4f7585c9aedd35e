package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/study"
)

// near has for some functions a reference near the front, and the hypervolume within. The front of
// ZDT1 is 1 − √f over 0 to 1, that of ZDT2 1 − f².
var near = map[string]struct {
	reference   []float64
	hypervolume float64
}{
	"branin-currin": {},
	"zdt1-6":        {[]float64{1.1, 1.1}, 1.1*1.1 - 1.0/3},
	"zdt2-6":        {[]float64{1.1, 1.1}, 1.1*1.1 - 2.0/3},
}

// enormous returns a function whose values grow with the fifth power beyond a reference near the
// front, from which the hypervolume is then measured. The front is the same. ok is false for the
// functions that have no values far beyond.
func enormous(f testfunc.Vector) (g testfunc.Vector, ok bool) {
	at, ok := near[f.Name]
	g = f
	if at.reference != nil {
		g.Reference, g.Hypervolume = at.reference, at.hypervolume
	}
	g.Value = func(x []float64) []float64 {
		y := f.Value(x)
		for k, r := range g.Reference {
			if beyond := y[k]/r - 1; beyond > 0 {
				y[k] = r * (1 + beyond + math.Pow(beyond, 5))
			}
		}
		return y
	}
	return g, ok
}

// fronts returns the functions of several objectives, or those of them whose values can be huge.
func fronts(reference, huge bool) []game {
	var games []game
	for _, f := range testfunc.Vectors() {
		if huge {
			var ok bool
			if f, ok = enormous(f); !ok {
				continue
			}
		}
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
				values := each.Of(found, func(o optimizer.Observation) []float64 { return o.Values })
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
