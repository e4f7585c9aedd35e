package space

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// MaxReduction is the largest factor between the levels of a fidelity.
const MaxReduction = 1000

// checkFidelity checks a fidelity on its own, and sets its reduction.
func checkFidelity(found *check.Problems, path string, p *study.Parameter) {
	before := found.Failed
	for _, bound := range []struct {
		name  string
		value *float64
	}{{"min", p.Min}, {"max", p.Max}} {
		switch v := bound.value; {
		case v == nil:
			found.Add(path+"."+bound.name, "is missing: type %s needs min and max", p.Type)
		case !(*v >= 1 && *v <= study.MaxExact) || *v != math.Trunc(*v):
			found.Add(path+"."+bound.name, "%s is not accepted; want a whole number from 1 to %d", study.Format(*v), study.MaxExact)
		}
	}
	if p.Reduction == nil {
		p.Reduction = new(study.DefaultReduction)
	}
	if n := *p.Reduction; n < 2 || n > MaxReduction {
		found.Add(path+".reduction", "%d is not accepted; want a whole number from 2 to %d", n, MaxReduction)
	}
	if found.Unread(path+".min", path+".max", path+".reduction") || found.Failed > before {
		return
	}
	if len(p.Levels()) < 2 {
		found.Add(path+".max", "%s is less than %d times min, %s: a fidelity has at least two levels; to keep one, use type: fixed",
			study.Format(*p.Max), *p.Reduction, study.Format(*p.Min))
	}
}

// checkFidelities checks what a fidelity means for the other parameters: there is at most
// one, and something to search beside it.
func checkFidelities(found *check.Problems, path string, params []study.Parameter) {
	first := -1
	for i := range params {
		switch {
		case params[i].Type != study.Fidelity:
		case first >= 0:
			found.Add(fmt.Sprintf("%s[%d].type", path, i), "%s is a fidelity already: a study has at most one", params[first].Name)
		default:
			first = i
		}
	}
	found.AddIf(first >= 0 && len(params) == 1, path, "there is only a fidelity, which is not searched: give at least one parameter to tune")
}

// Fidelity returns the space's fidelity; false if it has none.
func (s *Space) Fidelity() (study.Parameter, bool) {
	if s.fidelity < 0 {
		return study.Parameter{}, false
	}
	return s.params[s.fidelity], true
}

// Searched returns the space that an optimiser searches: this one without its fidelity.
// It is the space itself if that has none.
func (s *Space) Searched() *Space {
	if s.searched == nil {
		return s
	}
	return s.searched
}

// Configuration returns the point of Searched of a point: the same without its fidelity.
func (s *Space) Configuration(p study.Point) study.Point {
	if s.fidelity < 0 {
		return p
	}
	c := maps.Clone(p)
	delete(c, s.params[s.fidelity].Name)
	return c
}

// AtLevel returns a point of Searched with the fidelity's k-th level, from 0. It is the
// point itself if the space has no fidelity.
func (s *Space) AtLevel(p study.Point, k int) study.Point {
	if s.fidelity < 0 {
		return p
	}
	c := make(study.Point, len(p)+1)
	maps.Copy(c, p)
	c[s.params[s.fidelity].Name] = s.params[s.fidelity].At(k)
	return c
}

// Level returns the number of a point's level, from 0; false if the space has no
// fidelity or the point none of its levels.
func (s *Space) Level(p study.Point) (k int, ok bool) {
	if s.fidelity < 0 {
		return 0, false
	}
	value, ok := p[s.params[s.fidelity].Name]
	if !ok {
		return 0, false
	}
	return s.params[s.fidelity].Index(value)
}

// deriveSearched makes the space without the fidelity, on which nothing else depends.
func (s *Space) deriveSearched() {
	s.fidelity = slices.IndexFunc(s.params, func(p study.Parameter) bool { return p.Type == study.Fidelity })
	if s.fidelity < 0 {
		return
	}
	without := &Space{index: make(map[string]int), checks: s.checks, fidelity: -1, solver: s.solver, balances: s.balances}
	for i, p := range s.params {
		if i == s.fidelity {
			continue
		}
		conds := slices.Clone(s.conds[i])
		for j := range conds {
			if conds[j].parent > s.fidelity {
				conds[j].parent--
			}
		}
		without.index[p.Name] = len(without.params)
		without.params, without.order, without.conds = append(without.params, p), append(without.order, p.Name), append(without.conds, conds)
	}
	without.size, without.finite = without.count()
	s.searched = without
}
