package registry

import (
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// Every optimiser runs a study to its end whose points must lie on a simplex or in a thin
// slab, and suggests points of its own there.
func TestLinearConstraints(t *testing.T) {
	weights := func(n int) (params []study.Parameter) {
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"}[:n] {
			params = append(params, study.Parameter{Name: name, Type: study.Float, Min: new(0.0), Max: new(1.0)})
		}
		return params
	}
	some := []string{"hebo", "tpe", "cmaes", "random"}
	for _, c := range []struct {
		name        string
		params      []study.Parameter
		constraints []string
		best        map[string]float64
		algorithms  []string
	}{
		{"simplex", weights(3), []string{"a + b + c == 1.0"}, map[string]float64{"a": 0.2, "b": 0.3, "c": 0.5}, Names()},
		{"slab", weights(2), []string{"a + b <= 1", "a + b >= 0.999999"}, map[string]float64{"a": 0.2, "b": 0.8}, some},
		{"eight weights", weights(8), []string{"a + b + c + d + e + f + g + h == 1"}, map[string]float64{"a": 0.5, "b": 0.5}, some},
	} {
		space := optimizertest.Space(t, c.params, c.constraints)
		for _, name := range c.algorithms {
			t.Run(c.name+" "+name, func(t *testing.T) {
				o, err := New(name, nil)
				if err != nil {
					t.Fatal(err)
				}
				const trials = 24
				s := optimizertest.NewSession(t, o, space, 1)
				s.Problem.MaxTrials = trials
				own, distinct := 0, map[string]bool{}
				for trial := 1; trial <= trials; trial++ {
					x := s.Ask(1)[0]
					distinct[space.Key(x.Point)] = true
					if x.Reasons.Note != "drawn at random: the algorithm had no other point" &&
						x.Reasons.Note != "drawn at random: the distribution held no point that may be evaluated" {
						own++
					}
					loss := 0.0
					for _, p := range c.params {
						d := x.Point[p.Name].(float64) - c.best[p.Name]
						loss += d * d
					}
					s.Tell(trial, loss)
				}
				t.Log(s.Best())
				if own < trials || len(distinct) < trials*3/4 {
					t.Errorf("%d points of %d are the algorithm's own, %d are distinct", own, trials, len(distinct))
				}
			})
		}
	}
}

// The first points of wide integers are spread over the whole range, and no optimiser takes
// time or memory for the number of values.
func TestWideIntegers(t *testing.T) {
	params := []study.Parameter{
		{Name: "million", Type: study.Int, Min: new(-1e6), Max: new(1e6)},
		{Name: "trillion", Type: study.Int, Min: new(-1e12), Max: new(1e12)},
		{Name: "quadrillion", Type: study.Int, Min: new(-1e15), Max: new(1e15)},
		{Name: "most", Type: study.Int, Min: new(0.0), Max: new(0x1p53 - 1)},
		{Name: "steps", Type: study.Int, Min: new(-1e15), Max: new(1e15), Step: new(1000.0)},
		{Name: "log", Type: study.Int, Min: new(1.0), Max: new(1e15), Scale: study.Log},
	}
	space := optimizertest.Space(t, params, nil)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			o, err := New(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := optimizertest.NewSession(t, o, space, 4)
			first := s.Ask(64)
			for trial := 1; trial <= 16; trial++ {
				s.Tell(trial, params[0].ToUnit(first[trial-1].Point["million"]))
			}
			s.Ask(4) // of a model. The session checks that each point is in the space
			for _, p := range params {
				var quarters [4]int
				for _, b := range first {
					quarters[min(3, int(4*p.ToUnit(b.Point[p.Name])))]++
				}
				if slices.Contains(quarters[:], 0) {
					t.Errorf("of 64 values of %s, the quarters of its range have %v", p.Name, quarters)
				}
			}
		})
	}
}
