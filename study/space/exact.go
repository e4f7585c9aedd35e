package space

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// # Constraints that are solved
//
// Random points never meet x + y + z == 1, or a sum in a thin slab. So where linear
// conditions leave a sum less than the share thin of its range, the floats in the sum are solved
// for these conditions. Such a float has the linear scale, and neither a step nor a
// condition. Its places in the unit cube are those of optimizer.Encoding. All other
// constraints are only checked.

// thin is the share of a sum's range below which a condition is solved.
const thin = 0.01

// touching is a difference in the unit cube that is due to rounding.
const touching = 1e-12

// solver moves points to where they meet the linear conditions.
type solver struct {
	space *Space
	rows  []*row // first those to solve
	tight int    // how many are to be solved
	names []string
	// whole is the region if nothing but the floats to move is in the conditions.
	whole *region
}

// newSolver returns the solver of a space, nil if it has no condition to be solved, or if no
// point meets them all.
func (s *Space) newSolver() *solver {
	v := &solver{space: s}
	var loose []*row
	for _, r := range s.merged() {
		if r.low > r.high || r.high-r.low > thin || !slices.ContainsFunc(r.names, s.movable) {
			loose = append(loose, r)
			continue
		}
		v.rows = append(v.rows, r)
	}
	v.tight = len(v.rows)
	v.rows = append(v.rows, loose...)
	given := false
	for _, r := range v.rows {
		for _, name := range r.names {
			if s.movable(name) {
				v.names = append(v.names, name)
			} else {
				given = true
			}
		}
	}
	slices.Sort(v.names)
	v.names = slices.Compact(v.names)
	if v.tight == 0 {
		return nil
	}
	if !given {
		if v.whole = v.region(nil, nil); v.whole == nil {
			return nil
		}
	}
	return v
}

// solves reports whether the constraint is one of those to be solved.
func (v *solver) solves(c *constraint) bool {
	return v != nil && slices.ContainsFunc(v.rows[:v.tight], func(r *row) bool { return slices.Contains(r.of, c) })
}

// movable reports whether the parameter can be solved for.
func (s *Space) movable(name string) bool {
	p := s.params[s.index[name]]
	return p.Type == study.Float && p.Scale == study.Linear && p.Step == nil && len(p.When) == 0
}

// Solves reports whether the space has constraints that random points do not meet, and that
// Project, Solve and Wander can meet.
func (s *Space) Solves() bool { return s.solver != nil || len(s.balances) > 0 }

// Project moves a point to a near one that meets the linear constraints, if they are solved.
// Values in fixed stay. It changes floats, and ints of equalities of whole numbers, but nothing if
// the point meets them.
func (s *Space) Project(p, fixed study.Point) {
	s.meetWhole(p, fixed)
	if s.solver != nil && !s.solver.met(p) {
		s.solver.move(p, fixed, func(r *region, u []float64) bool { r.project(u); return true })
	}
}

// Solve is Project, but changes as few values as there are conditions to meet. It leaves the
// point as it is if that would need values out of their ranges. So points that are uniform
// become uniform on what meets the constraints, once those that do not are dropped.
func (s *Space) Solve(p, fixed study.Point) {
	s.solveWhole(p, fixed)
	if s.solver != nil && !s.solver.met(p) {
		s.solver.move(p, fixed, func(r *region, u []float64) bool {
			if !r.met(u, 1e-9, 0) {
				return r.pivot(u)
			}
			r.project(u)
			return true
		})
	}
}

// Wander moves the floats of a point to random places: uniformly on all that meets the linear
// constraints with the point's other values. It does the same with the ints of each equality of
// whole numbers.
func (s *Space) Wander(p, fixed study.Point, rng *rand.Rand) {
	s.wanderWhole(p, fixed, rng)
	if s.solver != nil {
		s.solver.move(p, fixed, func(r *region, u []float64) bool { r.walk(u, rng); return true })
	}
}

// move lets change alter the places of the point's floats.
func (v *solver) move(p, fixed study.Point, change func(r *region, u []float64) bool) {
	r := v.whole
	if r == nil || len(fixed) > 0 {
		if r = v.region(p, fixed); r == nil {
			return
		}
	}
	u := make([]float64, len(r.names))
	for i, name := range r.names {
		value, ok := p[name]
		if !ok {
			return // of a partial point
		}
		u[i] = v.parameter(name).ToUnit(value)
	}
	before := slices.Clone(u)
	if !change(r, u) {
		return
	}
	for i, name := range r.names {
		if u[i] != before[i] {
			p[name] = v.parameter(name).FromUnit(u[i])
		}
	}
	v.polish(r, p, u)
}

func (v *solver) parameter(name string) study.Parameter {
	return v.space.params[v.space.index[name]]
}

// met reports whether the point meets the constraints of the rows as they are computed.
func (v *solver) met(p study.Point) bool { return v.exact(p, v.rows) == len(v.rows) }

// exact returns how many of the rows' constraints are true as they are computed.
func (v *solver) exact(p study.Point, rows []*row) int {
	n := 0
	for _, r := range rows {
		if !slices.ContainsFunc(r.of, func(c *constraint) bool { return !c.applies(p) || !c.Holds(p) }) {
			n++
		}
	}
	return n
}

// polish corrects rounding errors: it solves again, for the floats with the most slack, and then
// tries the values beside those that there are.
func (v *solver) polish(r *region, p study.Point, u []float64) {
	slack, order := make([]float64, len(u)), make([]int, len(u))
	for i, at := range u {
		slack[i], order[i] = min(at, 1-at), i
	}
	solved, by := eliminate(r.solved(), slack), make([]float64, len(r.tight))
	steps := make([]float64, len(u)) // what rounding of a sum takes of a float
	for i, k := range r.tight {
		sum, size := v.rows[k].sum(p)
		by[i] = min(max(sum, v.rows[k].low), v.rows[k].high) - sum
		for j, w := range r.rows[k].weights {
			if w != 0 {
				steps[j] = max(steps[j], size*0x1p-54/math.Abs(w))
			}
		}
	}
	for i, pivot := range solved.pivots {
		low, high := v.space.rangeOf(r.names[pivot])
		p[r.names[pivot]] = min(max(p[r.names[pivot]].(float64)+dot(solved.sums[i], by)*(high-low), low), high) + 0
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(slack[j], slack[i]) })
	for _, i := range order[:min(len(order), polished)] {
		low, high := v.space.rangeOf(r.names[i])
		if v.beside(p, r.names[i], steps[i]*(high-low), low, high) {
			return
		}
	}
}

// polished is the largest number of floats by which rounding errors are corrected.
const polished = 16

// beside changes a float by a few steps, to where the most constraints that are solved hold as
// they are computed. It reports whether all do.
func (v *solver) beside(p study.Point, name string, step, low, high float64) bool {
	const tries = 16 // of each kind of step
	start := p[name].(float64)
	unit := math.Nextafter(math.Abs(start), math.Inf(1)) - math.Abs(start)
	best, most := start, v.exact(p, v.rows[:v.tight])
	for try := 0; try < 2*tries && most < v.tight; try++ {
		by := unit
		if try >= tries {
			by = max(unit, step)
		}
		by *= float64(1 + try%tries/2)
		if try%2 == 1 {
			by = -by
		}
		p[name] = min(max(start+by, low), high) + 0
		if n := v.exact(p, v.rows[:v.tight]); n > most {
			best, most = p[name].(float64), n
		}
	}
	p[name] = best
	return most == v.tight
}
