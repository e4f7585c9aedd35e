package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/research/tabulated"
)

// Earlier studies have points of the other tables with these tables' losses, and the same ones for the same seed.
func TestEarlier(t *testing.T) {
	mine, other := small(t), small(t)
	mine.Name, other.Name = "Family-mine", "Family-other"
	all := earlier(mine, []*tabulated.Table{other}, 3)
	if len(all) != 1 || all[0].Name != "Family-other" || len(all[0].Points) != earlierPoints || len(all[0].Costs) != earlierPoints {
		t.Fatalf("the earlier studies are %+v", all)
	}
	for i, p := range all[0].Points {
		if p["n"] != all[0].Costs[i] { // the loss of n is n
			t.Errorf("the point %v has the loss %v", p, all[0].Costs[i])
		}
		if all[0].Seconds[i] != all[0].Costs[i]+1 {
			t.Errorf("the point %v took %v s", p, all[0].Seconds[i])
		}
	}
	if only := valuesOnly(all); only[0].Seconds != nil || all[0].Seconds == nil {
		t.Error("the times are not left out, or for others too")
	}
	if again := earlier(mine, []*tabulated.Table{other}, 3); !slices.Equal(again[0].Costs, all[0].Costs) {
		t.Error("the same seed draws other points")
	}
}

// After two trials, the times of the same table say what others take; without them it is the mean of the two.
func TestAhead(t *testing.T) {
	table := small(t)
	rng := func() *rand.Rand { return rand.New(rand.NewPCG(2, 2)) }
	with, err := ahead(t.Context(), table, earlier(table, []*tabulated.Table{table}, 1), 2, rng())
	if err != nil || with > 0.1 {
		t.Errorf("off by %g, %v", with, err)
	}
	without, err := ahead(t.Context(), table, nil, 2, rng())
	if err != nil || without < 0.3 {
		t.Errorf("off by %g without earlier studies, %v", without, err)
	}
}
