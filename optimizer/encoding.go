package optimizer

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// inactivePlace is the coordinate of an inactive conditional parameter. It is the same
// for every point, so that it does not make points differ.
const inactivePlace = 0.5

// Column is one coordinate of an Encoding: a parameter with more than one value.
type Column struct {
	Parameter study.Parameter
	// Levels is the number of values that the parameter can take, or 0 if it is
	// continuous. For a parameter without a scale of its own (categorical, ordinal,
	// bool), the values lie at (i+½)/Levels, i = 0…Levels−1.
	Levels int
}

// wide is the number of levels from which on a column is as good as continuous.
const wide = 1 << 20

// Smooth reports whether the column is continuous, or has so many levels that their steps do
// not matter: they may be smaller than what rounding does to a density or a gradient.
func (c Column) Smooth() bool { return c.Levels == 0 || c.Levels > wide }

// Categorical reports whether the column's values have no order.
func (c Column) Categorical() bool { return c.Parameter.Type == study.Categorical }

// Unordered reports whether the column's values have no order, or just two values.
func (c Column) Unordered() bool { return c.Categorical() || c.Parameter.Type == study.Bool }

// Level returns the number of the level at u, for a parameter without a scale of its own.
func (c Column) Level(u float64) int { return min(int(u*float64(c.Levels)), c.Levels-1) }

// Place returns where the k-th level of such a parameter lies.
func (c Column) Place(k int) float64 { return (float64(k) + 0.5) / float64(c.Levels) }

// Bin returns the ends of the part of the unit interval that decodes to the same value as
// u. Both are u if the column is continuous.
func (c Column) Bin(u float64) (low, high float64) {
	if c.Levels == 0 {
		return u, u
	}
	if c.Parameter.Type != study.Int && c.Parameter.Type != study.Float {
		k := float64(c.Level(u))
		return k / float64(c.Levels), (k + 1) / float64(c.Levels)
	}
	k, _ := c.Parameter.Index(c.Parameter.FromUnit(u))
	return c.edge(k), c.edge(k + 1)
}

// edge returns the place between the levels k-1 and k of a numeric parameter.
func (c Column) edge(k int) float64 {
	if k <= 0 {
		return 0
	}
	if k >= c.Levels {
		return 1
	}
	a, _ := study.Number(c.Parameter.At(k - 1))
	b, _ := study.Number(c.Parameter.At(k))
	return c.Parameter.ToUnit(a + (b-a)/2)
}

// Encoding maps the points of a space to the unit cube and back. Each numeric, ordinal,
// bool and categorical parameter has one column; a parameter with a single value has
// none. The column of an inactive parameter holds a fixed value. An Encoding is
// immutable and safe for concurrent use.
type Encoding struct {
	space      *space.Space
	parameters []study.Parameter
	columns    []Column
	column     map[string]int // of each parameter that has one
}

// NewEncoding returns the encoding of a space, its columns in the space's order
// of parameters.
func NewEncoding(space *space.Space) *Encoding {
	e := &Encoding{space: space, parameters: space.Parameters(), column: map[string]int{}}
	for _, p := range e.parameters {
		levels, finite := p.Cardinality()
		if finite && levels == 1 {
			continue
		}
		if !finite {
			levels = 0
		}
		e.column[p.Name] = len(e.columns)
		e.columns = append(e.columns, Column{Parameter: p, Levels: levels})
	}
	return e
}

// Columns returns the columns, which the caller MUST NOT change.
func (e *Encoding) Columns() []Column { return e.columns }

// Dim returns the number of columns.
func (e *Encoding) Dim() int { return len(e.columns) }

// Discrete reports whether no column is continuous. The space is then finite, even if
// it has more points than space.Space's Size can count.
func (e *Encoding) Discrete() bool {
	return !slices.ContainsFunc(e.columns, func(c Column) bool { return c.Levels == 0 })
}

// Encode returns the place of a point of the space in [0,1]^Dim.
func (e *Encoding) Encode(p study.Point) []float64 {
	x := make([]float64, len(e.columns))
	for i, c := range e.columns {
		x[i] = inactivePlace
		if value, active := p[c.Parameter.Name]; active {
			x[i] = c.Parameter.ToUnit(value)
		}
	}
	return x
}

// Decode returns the point at x, a point of [0,1]^Dim: values rounded to the
// levels of their parameters, inactive parameters left out. The point may break
// the space's constraints, except for linear ones that the space solves: it is moved to
// where they hold. Coordinates outside [0,1] count as the nearest bound, NaN as ½.
func (e *Encoding) Decode(x []float64) study.Point {
	p := e.decode(x, nil)
	e.space.Project(p, nil)
	return p
}

// Project sets x to the place of the point that it decodes to, if the space solves
// constraints. Otherwise it leaves x as it is.
func (e *Encoding) Project(x []float64) {
	if e.space.Solves() {
		copy(x, e.Encode(e.Decode(x)))
	}
}

// decode is Decode with the given values for the active parameters of fixed.
func (e *Encoding) decode(x []float64, fixed study.Point) study.Point {
	p := make(study.Point, len(e.parameters))
	for _, parameter := range e.parameters {
		name := parameter.Name
		if len(parameter.When) > 0 && !e.space.Active(p, name) {
			continue
		}
		if value, given := fixed[name]; given {
			p[name] = value
			continue
		}
		u := inactivePlace
		if i, ok := e.column[name]; ok && !math.IsNaN(x[i]) {
			u = min(1, max(0, x[i]))
		}
		p[name] = parameter.FromUnit(u)
	}
	return p
}
