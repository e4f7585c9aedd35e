package space

import (
	"maps"

	"github.com/fantasia-hpo/fantasia/study"
)

// maxVisits is the largest number of partial points that an enumeration visits.
const maxVisits = 1 << 20

// Enumerate returns all points that meet the constraints, if there are at most limit.
// They are in ascending order of the parameters' values (see Parameter.At), the last
// parameter changing fastest. It returns false if there are more, if a float without a
// step can be active, or if more than a million partial points would have to be
// visited.
func (s *Space) Enumerate(limit int) ([]study.Point, bool) {
	all := make([]int, len(s.params))
	for i := range all {
		all[i] = i
	}
	var points []study.Point
	w := s.newWalk(all, s.checks, maxVisits)
	w.visit = func(p study.Point) bool {
		points = append(points, maps.Clone(p))
		return len(points) <= limit
	}
	if !w.from(0) {
		return nil, false
	}
	return points, true
}

// walk visits all points of a subset of the parameters that meet some constraints,
// depth first.
type walk struct {
	space *Space
	// params are the parameters' indices, ascending, each with everything that it
	// depends on; due[k] are the constraints that are decided once the k-th has a
	// value.
	params []int
	due    [][]*constraint
	// budget is the number of values that may still be tried; long constraints use
	// more.
	budget int
	point  study.Point
	// visit is called with each point, which belongs to the walk, and returns whether
	// to continue.
	visit func(study.Point) bool
}

func (s *Space) newWalk(params []int, checks []*constraint, budget int) *walk {
	w := &walk{space: s, params: params, budget: budget, point: make(study.Point), due: make([][]*constraint, len(params))}
	for _, c := range checks {
		last := 0
		for k, i := range params {
			for _, name := range c.Names {
				if s.params[i].Name == name {
					last = k
				}
			}
		}
		w.due[last] = append(w.due[last], c)
	}
	return w
}

// from walks from the k-th parameter on, and reports whether it was completed.
func (w *walk) from(k int) bool {
	if k == len(w.params) {
		return w.visit(w.point)
	}
	p := &w.space.params[w.params[k]]
	if !w.space.active(w.point, w.params[k]) {
		return w.from(k + 1)
	}
	n, finite := p.Cardinality()
	if !finite {
		return false
	}
	defer delete(w.point, p.Name)
	for i := range n {
		if w.budget--; w.budget < 0 {
			return false
		}
		w.point[p.Name] = p.At(i)
		if w.met(k) && !w.from(k+1) {
			return false
		}
	}
	return true
}

// met reports whether the constraints that the k-th parameter decides hold.
func (w *walk) met(k int) bool {
	for _, c := range w.due[k] {
		w.budget -= len(c.Source) / 100 // long ones take longer
		if !c.holds(w.point) {
			return false
		}
	}
	return true
}
