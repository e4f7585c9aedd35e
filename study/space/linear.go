package space

import (
	"maps"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// form is a linear function of a point: the sum of weights times values, plus a constant.
type form struct {
	weights  map[string]float64 // by parameter
	constant float64
}

// plus returns f + by·g.
func (f form) plus(g form, by float64) form {
	sum := form{weights: maps.Clone(f.weights), constant: f.constant + by*g.constant}
	if sum.weights == nil {
		sum.weights = make(map[string]float64)
	}
	for name, w := range g.weights {
		if sum.weights[name] += by * w; sum.weights[name] == 0 {
			delete(sum.weights, name)
		}
	}
	return sum
}

// row is a linear condition that constraints imply: the sum of weights times values lies
// between low and high.
type row struct {
	names     []string // sorted
	weights   []float64
	low, high float64
	of        []*constraint
}

// tolerance is how far a sum may be from what an equality demands, relative to the sizes of
// its terms: what rounding the values and adding them can do.
const tolerance = 16 * 0x1p-53

// nearly reports whether the point meets an equality within the tolerance.
func (r *row) nearly(p study.Point) bool {
	sum, size := r.sum(p)
	return math.Abs(sum-r.low) <= tolerance*max(size, math.Abs(r.low))
}

// sum returns the weighted sum of a point's values, and that of the sizes of its terms.
func (r *row) sum(p study.Point) (sum, size float64) {
	for i, name := range r.names {
		v, _ := study.Number(p[name])
		sum, size = sum+r.weights[i]*v, size+math.Abs(r.weights[i]*v)
	}
	return sum, size
}

// deriveRows finds the linear conditions that the constraints imply.
func (s *Space) deriveRows() {
	for _, c := range s.checks {
		if !slices.ContainsFunc(c.Names, func(name string) bool { return len(s.params[s.index[name]].When) > 0 }) {
			c.rows, c.equality = s.rows(c, c.Expr)
		}
	}
}

// rows returns the linear conditions that a part of a constraint implies. equality says that
// they are equalities, and all that it demands.
func (s *Space) rows(c *constraint, e *Expr) (rows []*row, equality bool) {
	if !e.binary() {
		return nil, false
	}
	left, right := e.Args[0], e.Args[1]
	low := math.Inf(-1)
	switch e.Op {
	case OpAnd:
		rows, equality = s.rows(c, left)
		more, too := s.rows(c, right)
		return append(rows, more...), equality && too
	case OpAtLeast:
		left, right = right, left
	case OpAtMost:
	case OpEquals:
		low = 0
	default:
		return nil, false
	}
	most, ok := s.form(right)
	if low < 0 && ok && len(most.weights) == 0 && left.Op == OpAbs {
		f, ok := s.form(left.Args[0])
		return bounded(c, f, -most.constant, most.constant, ok), false
	}
	f, linear := s.form(left)
	rows = bounded(c, f.plus(most, -1), low, 0, ok && linear)
	return rows, low == 0 && len(rows) > 0
}

// bounded returns the condition low ≤ f ≤ high, if it is one.
func bounded(c *constraint, f form, low, high float64, ok bool) []*row {
	r := &row{names: slices.Sorted(maps.Keys(f.weights)), low: low - f.constant, high: high - f.constant, of: []*constraint{c}}
	size := f.constant
	for _, name := range r.names {
		r.weights = append(r.weights, f.weights[name])
		size += math.Abs(f.weights[name])
	}
	if !ok || len(r.names) == 0 || math.IsNaN(size) || math.IsInf(size, 0) {
		return nil
	}
	return []*row{r}
}

// form returns an expression as a linear function of the parameters.
func (s *Space) form(e *Expr) (f form, ok bool) {
	switch e.Op {
	case OpNumber:
		return form{constant: e.Number}, true
	case OpParameter:
		p, ok := s.Parameter(e.Parameter)
		if ok && p.Type == study.Fixed {
			v, number := study.Number(p.Value)
			return form{constant: v}, number
		}
		return form{weights: map[string]float64{p.Name: 1}}, ok && p.Numeric()
	}
	var args []form
	for _, arg := range e.Args {
		f, ok := s.form(arg)
		if !ok {
			return form{}, false
		}
		args = append(args, f)
	}
	return combine(e.Op, args)
}

// combine applies an operation to linear functions, if the result is one.
func combine(op Op, args []form) (form, bool) {
	constant := func(f form) bool { return len(f.weights) == 0 }
	switch op {
	case OpNegate:
		return form{}.plus(args[0], -1), true
	case OpAdd:
		return args[0].plus(args[1], 1), true
	case OpSubtract:
		return args[0].plus(args[1], -1), true
	case OpMultiply:
		if constant(args[0]) {
			return form{}.plus(args[1], args[0].constant), true
		}
		return form{}.plus(args[0], args[1].constant), constant(args[1])
	case OpDivide:
		return form{}.plus(args[0], 1/args[1].constant), constant(args[1])
	}
	return form{}, false
}

// merged returns the conditions of all constraints, with those on the same sum joined. Their
// weights are divided by how much the sum can change over the parameters' ranges.
func (s *Space) merged() []*row {
	var all []*row
	for _, c := range s.checks {
		for _, r := range c.rows {
			n := &row{names: r.names, low: r.low, high: r.high, of: r.of}
			var span, least, most float64
			for i, name := range r.names {
				low, high := s.rangeOf(name)
				span += math.Abs(r.weights[i]) * (high - low)
				least += min(r.weights[i]*low, r.weights[i]*high)
				most += max(r.weights[i]*low, r.weights[i]*high)
			}
			n.low, n.high = max(n.low, least), min(n.high, most)
			if span == 0 || math.IsInf(span, 0) {
				continue
			}
			if r.weights[0] < 0 { // x - y and y - x are one sum
				span, n.low, n.high = -span, n.high, n.low
			}
			for _, w := range r.weights {
				n.weights = append(n.weights, w/span)
			}
			n.low, n.high = n.low/span, n.high/span
			same := slices.IndexFunc(all, func(o *row) bool { return slices.Equal(o.names, n.names) && slices.Equal(o.weights, n.weights) })
			if same < 0 {
				all = append(all, n)
				continue
			}
			o := all[same]
			o.low, o.high, o.of = max(o.low, n.low), min(o.high, n.high), slices.Concat(o.of, n.of)
		}
	}
	return all
}

// rangeOf returns the least and the greatest value of a numeric parameter.
func (s *Space) rangeOf(name string) (low, high float64) {
	p := s.params[s.index[name]]
	if p.Min != nil && p.Max != nil {
		return *p.Min, *p.Max
	}
	low, high = math.Inf(1), math.Inf(-1)
	for _, listed := range p.Listed() {
		v, _ := study.Number(listed)
		low, high = min(low, v), max(high, v)
	}
	return low, high
}
