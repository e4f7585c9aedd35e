package pt

import (
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt/network"
	"github.com/fantasia-hpo/fantasia/study"
)

// coder turns points into rows of the transformer's columns: one for each parameter that is
// a number or in an order, and one for each choice of a categorical one.
type coder struct {
	encoding *optimizer.Encoding
	columns  int
	model    *network.Model
}

func newCoder(e *optimizer.Encoding) *coder {
	c := &coder{encoding: e}
	for _, column := range e.Columns() {
		c.columns += choices(column)
	}
	return c
}

// choices returns how many columns of the transformer a column becomes. Two choices need
// one.
func choices(c optimizer.Column) int {
	if c.Categorical() && c.Levels > 2 {
		return c.Levels
	}
	return 1
}

// row returns the row of a point whose coordinates are at. A parameter that is inactive has
// ½ in its columns.
func (c *coder) row(p study.Point, at []float64) []float64 {
	row := make([]float64, 0, c.columns)
	for i, column := range c.encoding.Columns() {
		_, active := p[column.Parameter.Name]
		n := choices(column)
		for k := range n {
			u := at[i]
			switch {
			case !active:
				u = 0.5
			case n > 1 && column.Level(at[i]) == k:
				u = 1
			case n > 1:
				u = 0
			}
			row = append(row, u)
		}
	}
	return row
}
