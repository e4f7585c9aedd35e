package study_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

// The front is all values that no others dominate, by the definition: nowhere worse and
// somewhere better.
func TestFrontByItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		objectives := make([]study.Objective, 1+rng.IntN(4))
		for i := range objectives {
			objectives[i].Direction = []study.Direction{study.Minimize, study.Maximize}[rng.IntN(2)]
		}
		all := make([]study.Values, rng.IntN(30))
		for i := range all {
			if rng.IntN(8) == 0 {
				continue // it did not complete
			}
			for range objectives {
				all[i] = append(all[i], float64(rng.IntN(4)))
			}
		}
		var want []int
		for i, v := range all {
			if v == nil {
				continue
			}
			dominated := slices.ContainsFunc(all, func(w study.Values) bool {
				if w == nil {
					return false
				}
				worse, better := false, false
				for k, o := range objectives {
					sign := 1.0
					if o.Direction == study.Maximize {
						sign = -1
					}
					worse = worse || sign*w[k] > sign*v[k]
					better = better || sign*w[k] < sign*v[k]
				}
				return better && !worse
			})
			if !dominated {
				want = append(want, i)
			}
		}
		if got := study.Front(objectives, all); !slices.Equal(got, want) {
			t.Fatalf("the front of %v for %v is %v, want %v", all, objectives, got, want)
		}
	}
}

func TestObjectivesOfOneAndOfSeveral(t *testing.T) {
	one, two := study.Objective{Metric: "error"}, study.Objective{Metric: "seconds"}
	single, several := study.Spec{Objective: one}, study.Spec{Several: []study.Objective{two, one}}
	if got := study.MetricNames(single.Objectives()); !slices.Equal(got, []string{"error"}) || single.FirstObjective().Metric != "error" {
		t.Errorf("a single objective is %v, the first %q", got, single.FirstObjective().Metric)
	}
	if got := study.MetricNames(several.Objectives()); !slices.Equal(got, []string{"seconds", "error"}) || several.FirstObjective().Metric != "seconds" {
		t.Errorf("two objectives are %v, the first %q", got, several.FirstObjective().Metric)
	}
	if v := (study.Values{}).First(); !math.IsNaN(v) {
		t.Errorf("the first of no values is %v, want NaN", v)
	}
}
