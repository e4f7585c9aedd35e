package main

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

// Each other task becomes an earlier study of its trainings that did not diverge, and a run is told where the trainings are.
func TestFinals(t *testing.T) {
	low, high := 0., 1.
	made := func(name string) *pool {
		p := &pool{name: name, guess: 1, epochs: 1, parameters: []study.Parameter{
			{Name: "x", Type: study.Float, Min: &low, Max: &high, Scale: study.Linear},
		}}
		for i := range 200 {
			x := float64(i) / 199
			loss := x
			if i%2 == 1 {
				loss = math.NaN()
			}
			p.trainings = append(p.trainings, training{point: study.Point{"x": x}, losses: []float64{loss}})
		}
		return p
	}
	mine, other := made("mine"), made("other")
	all := earlierOf(mine, []*pool{mine, other}, 1)
	if len(all) != 1 || all[0].Name != "other" || len(all[0].Points) != 100 {
		t.Fatalf("the earlier studies are %+v, want the 100 trainings of the other task that did not diverge", all)
	}
	for _, mode := range []string{"batch", "async"} {
		regret, err := playFinal(t.Context(), mine, []*pool{mine, other}, mode, "fantasia:true", "", 1)
		if err != nil || len(regret) != finals {
			t.Fatalf("%s: %d regrets, %v", mode, len(regret), err)
		}
		for i := 1; i < len(regret); i++ {
			if regret[i] > regret[i-1] {
				t.Errorf("%s: the regret grows from %v to %v", mode, regret[i-1], regret[i])
			}
		}
		if last := regret[finals-1]; last > 1 {
			t.Errorf("%s: the regret of a line is %v after %d trainings", mode, last, finals)
		}
	}
}
