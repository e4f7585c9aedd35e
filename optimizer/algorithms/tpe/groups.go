package tpe

import (
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// group is the columns of the parameters that are active under the same conditions.
// They have one joint density, made from the points where they are active.
type group struct {
	name    string // of one of the parameters
	at      []int  // the columns' numbers in the encoding
	columns []column
}

// newGroups returns the groups, each after those that its conditions name.
func newGroups(encoding *optimizer.Encoding) []*group {
	var groups []*group
	byConditions := map[string]*group{}
	for i, c := range encoding.Columns() {
		key := conditions(c.Parameter)
		g, known := byConditions[key]
		if !known {
			g = &group{name: c.Parameter.Name}
			byConditions[key] = g
			groups = append(groups, g)
		}
		g.at = append(g.at, i)
		g.columns = append(g.columns, newColumn(c))
	}
	return groups
}

// conditions returns canonical text of a parameter's conditions.
func conditions(p study.Parameter) string {
	var all []string
	for name, values := range p.When {
		var texts []string
		for _, v := range values {
			texts = append(texts, study.Quote(v))
		}
		slices.Sort(texts)
		all = append(all, name+"\x00"+strings.Join(texts, "\x00"))
	}
	slices.Sort(all)
	return strings.Join(all, "\x01")
}

// of returns the coordinates of those points at which the group is active.
func (g *group) of(points []point) [][]float64 {
	var rows [][]float64
	for _, p := range points {
		if _, active := p.point[g.name]; !active {
			continue
		}
		row := make([]float64, len(g.at))
		for k, i := range g.at {
			row[k] = p.x[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// put writes the group's coordinates into a point of the unit cube.
func (g *group) put(x, row []float64) {
	for k, i := range g.at {
		x[i] = row[k]
	}
}
