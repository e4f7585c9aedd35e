package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/research/lines"
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
	files, err := filepath.Glob(filepath.Join(folder, family(name)+"-*.jsonl.gz"))
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	var others []*tabulated.Table
	for _, path := range files {
		t, err := tabulated.Read(path)
		if err != nil {
			return nil, err //nolint:wrapcheck // it says which table
		}
		if t.Name != name {
			others = append(others, t)
		}
	}
	return others, nil
}

// valuesOnly returns earlier studies that do not say how long their trainings took.
func valuesOnly(all []optimizer.Earlier) []optimizer.Earlier {
	all = slices.Clone(all)
	for i := range all {
		all[i].Seconds = nil
	}
	return all
}

// earlier returns other tables as earlier studies, each with as many points, drawn at random.
func earlier(t *tabulated.Table, others []*tabulated.Table, seed int) []optimizer.Earlier {
	var all []optimizer.Earlier
	for _, other := range others {
		rng := rand.New(rand.NewPCG(lines.Seed(t.Name+" "+other.Name, seed), 3))
		e := optimizer.Earlier{Name: other.Name}
		for range earlierPoints {
			row := other.Rows[rng.IntN(len(other.Rows))]
			e.Points = append(e.Points, row.Point)
			k := rng.IntN(len(row.Losses))
			e.Costs, e.Seconds = append(e.Costs, row.Losses[k]), append(e.Seconds, row.Seconds[k])
		}
		all = append(all, e)
	}
	return all
}
