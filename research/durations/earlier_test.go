package main

import (
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
	}
	if again := earlier(mine, []*tabulated.Table{other}, 3); !slices.Equal(again[0].Costs, all[0].Costs) {
		t.Error("the same seed draws other points")
	}
}
