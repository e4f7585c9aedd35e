package optimizer

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

// What more trials take is what as many took that ended last, as far as that is known.
func TestPrice(t *testing.T) {
	list := []Observation{{Seconds: 1e6, Cost: 1e6}, {Seconds: 20, Cost: 4}, {}, {Seconds: 40}}
	g := Gain{Trials: 2, Most: 0.5}
	g.Price(list)
	if g.Seconds != 60 || g.Cost != 1e6+4 {
		t.Errorf("two more trials take %g s and cost %g, want 60 and %g", g.Seconds, g.Cost, 1e6+4)
	}
	g.Cost = 2
	for per, want := range map[study.Per]float64{"": 0.5, study.PerTrials: 0.5, study.PerHour: 30, study.PerCost: 0.25} {
		if most, ok := g.MostPer(per); !ok || most != want {
			t.Errorf("per %q they gain at most %g (%t), want %g", per, most, ok, want)
		}
	}
	unknown := Gain{Trials: 2, Most: 0.5}
	unknown.Price(list[2:3])
	for _, per := range []study.Per{study.PerHour, study.PerCost} {
		if most, ok := unknown.MostPer(per); ok {
			t.Errorf("per %s they gain at most %g, although nothing tells what they take", per, most)
		}
	}
}
