package space

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// Bounds on the search for a point that meets constraints: the values that an
// enumeration tries, the samples, and the total effort of all searches of a study. When
// that is spent, constraints are assumed to be satisfiable.
const (
	maxTried   = 50_000
	maxSamples = 8192
	maxEffort  = 1_000_000
)

// verdict is the result of a search for a point.
type verdict int

const (
	found   verdict = iota // a point
	unknown                // nothing, because the effort ran out
	sampled                // nothing in maxSamples samples and as many refinements
	proved                 // nothing, after visiting every point
)

// checkSatisfiable reports constraints that no point meets. It checks each on its own,
// over points that have all the parameters that it mentions, then all together.
func (s *Space) checkSatisfiable(found *check.Problems, prefix string) {
	effort := maxEffort
	before := found.Failed
	for i, c := range s.checks {
		if why := s.unsampled(c, c.Expr); why != "" {
			found.Add(fmt.Sprintf("%sconstraints[%d]", prefix, i), "%q: %s", c.Source, why)
			continue
		}
		if s.solver.solves(c) {
			continue // it takes values for all floats at once
		}
		if v := s.search([]*constraint{c}, true, &effort); v > unknown {
			found.Add(fmt.Sprintf("%sconstraints[%d]", prefix, i), "%q: no point meets it%s", c.Source, v.evidence(c.Names))
		}
	}
	if len(s.checks) < 2 && !s.Solves() || found.Failed > before {
		return
	}
	if v := s.search(s.checks, false, &effort); v > unknown {
		found.Add(prefix+"constraints", "no point meets all of them together%s", v.evidence(mentioned(s.checks)))
	}
}

// evidence describes for a message how certain the verdict is.
func (v verdict) evidence(names []string) string {
	if v == proved {
		return fmt.Sprintf(", of all that %s can be", strings.Join(names, ", "))
	}
	return fmt.Sprintf(" that was tried, %d over the ranges of %s: relax it, or the ranges", 2*maxSamples, strings.Join(names, ", "))
}

// mentioned returns the names that any of the constraints mentions, sorted.
func mentioned(checks []*constraint) []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.Names...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// search looks for a point that meets the constraints. If applied is set, a point must
// have each parameter that they mention. It visits all points if there are few.
// Otherwise it tries the initial points, corners, a quasi-random sequence, and random
// changes of the best point so far.
func (s *Space) search(checks []*constraint, applied bool, effort *int) verdict {
	places := s.closure(mentioned(checks))
	q := &query{space: s, places: places, checks: checks, applied: applied, effort: effort}
	w := s.newWalk(places, checks, min(maxTried, *effort))
	hit := false
	w.visit = func(p study.Point) bool {
		hit = q.score(p) == len(checks)
		return !hit
	}
	complete := w.from(0)
	*effort -= min(maxTried, *effort) - max(w.budget, 0)
	switch {
	case hit:
		return found
	case complete:
		return proved
	}
	for _, p := range s.initial {
		if q.covers(p) && q.score(p) == len(checks) {
			return found
		}
	}
	return q.sample()
}

// closure returns the indices of the named parameters and of all parameters that they
// depend on, ascending.
func (s *Space) closure(names []string) []int {
	in := make(map[int]bool)
	var add func(i int)
	add = func(i int) {
		if in[i] {
			return
		}
		in[i] = true
		for _, c := range s.conds[i] {
			add(c.parent)
		}
	}
	for _, name := range names {
		add(s.index[name])
	}
	return slices.Sorted(maps.Keys(in))
}

// query is one search by samples. A sample is a position in the unit cube, one
// coordinate a parameter.
type query struct {
	space   *Space
	places  []int
	checks  []*constraint
	applied bool
	effort  *int
}

// score returns how many of the constraints the point meets.
func (q *query) score(p study.Point) int {
	n := 0
	for _, c := range q.checks {
		*q.effort -= 1 + len(c.Source)/100
		if c.holds(p) && (!q.applied || c.applies(p)) {
			n++
		}
	}
	return n
}

// covers reports whether an initial point determines all the query's parameters.
func (q *query) covers(p study.Point) bool {
	for _, i := range q.places {
		if _, ok := p[q.space.params[i].Name]; !ok && q.space.active(p, i) {
			return false
		}
	}
	return true
}

// point returns the point at a position in the unit cube.
func (q *query) point(u []float64) study.Point {
	p := make(study.Point, len(q.places))
	for k, i := range q.places {
		if q.space.active(p, i) {
			p[q.space.params[i].Name] = q.space.params[i].FromUnit(u[k])
		}
	}
	q.space.Project(p, nil)
	return p
}

func (q *query) sample() verdict {
	best, bestScore := make([]float64, len(q.places)), -1
	u := make([]float64, len(q.places))
	steps := additiveSteps(len(q.places))
	for n := range maxSamples {
		for k := range u {
			if n < 1024 { // corners, the first 2^10 of them
				u[k] = float64(n >> (k % 10) & 1)
			} else {
				_, u[k] = math.Modf(0.5 + float64(n)*steps[k])
			}
		}
		if v := q.try(u, best, &bestScore); v != sampled {
			return v
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range maxSamples {
		copy(u, best)
		u[rng.IntN(len(u))] = rng.Float64()
		if v := q.try(u, best, &bestScore); v != sampled {
			return v
		}
	}
	return sampled
}

// try scores u and keeps it if it is as good as the best; sampled means to continue.
func (q *query) try(u, best []float64, bestScore *int) verdict {
	if *q.effort < 0 {
		return unknown
	}
	score := q.score(q.point(u))
	if score >= *bestScore {
		copy(best, u)
		*bestScore = score
	}
	if score == len(q.checks) {
		return found
	}
	return sampled
}

// additiveSteps are the steps of the additive recurrence R_d: the powers of 1/φ,
// where φ^(d+1) = φ + 1 (M. Roberts, The unreasonable effectiveness of
// quasirandom sequences, 2018).
func additiveSteps(d int) []float64 {
	phi := 2.0
	for range 64 {
		phi = math.Pow(1+phi, 1/float64(d+1))
	}
	steps := make([]float64, d)
	for k := range steps {
		steps[k] = math.Pow(phi, -float64(k+1))
	}
	return steps
}
