package main

import (
	"math/rand/v2"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/research/tabulated"
)

// earlierPoints is how many trainings an earlier study has.
const earlierPoints = 128

// family returns the name of the family that a table is of.
func family(name string) string {
	first, _, _ := strings.Cut(name, "-")
	return first
}

// relatives returns the other tables of a table's family.
func relatives(folder, name string) ([]*tabulated.Table, error) {
	var others []*tabulated.Table
	return others, tabulated.Each(folder, func(t *tabulated.Table) error {
		if t.Name != name && family(t.Name) == family(name) {
			others = append(others, t)
		}
		return nil
	})
}

// earlier returns other tables as earlier studies, each with as many points, drawn at random. They do not say how long their
// trainings took: a study keeps only the values of earlier ones.
func earlier(t *tabulated.Table, others []*tabulated.Table, seed int) []optimizer.Earlier {
	var all []optimizer.Earlier
	for _, other := range others {
		rng := rand.New(rand.NewPCG(seedOf(t.Name+" "+other.Name, seed), 3))
		e := optimizer.Earlier{Name: other.Name}
		for range earlierPoints {
			row := other.Rows[rng.IntN(len(other.Rows))]
			e.Points = append(e.Points, row.Point)
			e.Costs = append(e.Costs, row.Losses[rng.IntN(len(row.Losses))])
		}
		all = append(all, e)
	}
	return all
}
