package space

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// arrange checks the conditions, as far as the parameters that they name are valid. It
// sorts the parameters so that each comes after those that its When names.
func (s *Space) arrange(found *check.Problems, path string, params []study.Parameter, sound []bool) {
	if len(params) > MaxParameters {
		return
	}
	files := make(map[string]int, len(params))
	names := make([]string, len(params))
	for i, p := range params {
		files[p.Name], names[i] = i, p.Name
	}
	before := found.Failed
	if slices.Contains(names, "") {
		return // a condition may refer to it
	}
	for i := range params {
		checkWhen(found, fmt.Sprintf("%s[%d].when", path, i), &params[i], params, sound, files, names)
	}
	if found.Failed > before {
		return
	}
	a := arranger{Problems: found, path: path, params: params, files: files, state: make([]visitState, len(params))}
	for i := range params {
		if a.state[i] == unvisited {
			a.visit(i)
		}
	}
	for i, p := range a.order {
		s.params = append(s.params, params[p])
		s.order = append(s.order, params[p].Name)
		s.index[params[p].Name] = i
	}
	s.conds = make([][]condition, len(s.params))
	for i, p := range s.params {
		for _, name := range slices.Sorted(maps.Keys(p.When)) {
			s.conds[i] = append(s.conds[i], condition{parent: s.index[name], values: p.When[name]})
		}
	}
}

// checkWhen checks that a parameter's conditions name other parameters and values that
// these accept, and converts the values to their types.
func checkWhen(found *check.Problems, path string, p *study.Parameter, params []study.Parameter, sound []bool, files map[string]int,
	names []string) {
	for _, name := range slices.Sorted(maps.Keys(p.When)) {
		at := path + check.Key(name)
		i, ok := files[name]
		switch {
		case !ok:
			found.AddKey(at, "there is no parameter %q%s", name, check.DidYouMean(name, names))
			continue
		case name == p.Name:
			found.AddKey(at, "%q cannot depend on itself", name)
			continue
		case params[i].Type == study.Float:
			found.AddKey(at, "%q is a float: a condition looks at an int, categorical, ordinal, bool or fixed parameter", name)
			continue
		case params[i].Type == study.Fidelity:
			found.AddKey(at, "%q is a fidelity: what is searched does not depend on how thoroughly a trial is evaluated", name)
			continue
		case len(p.When[name]) == 0:
			found.Add(at, "there is no value: list those of %s for which %s is active", name, p.Name)
			continue
		case len(p.When[name]) > MaxListed:
			found.Add(at, "%d values are more than the most that are accepted, %d", len(p.When[name]), MaxListed)
			continue
		case !sound[i]:
			continue
		}
		for j, v := range p.When[name] {
			value, err := params[i].Convert(v)
			if err != nil {
				found.Add(fmt.Sprintf("%s[%d]", at, j), "%s is not a value of %s: %s", study.Quote(v), name, params[i].Accepts())
				continue
			}
			p.When[name][j] = value
		}
	}
}

// arranger walks the parameters depth first.
type arranger struct {
	*check.Problems
	path   string
	params []study.Parameter
	files  map[string]int
	state  []visitState
	trail  []int
	order  []int
}

type visitState int

const (
	unvisited visitState = iota
	visiting
	visited
)

// visit appends i to the order, after all that it depends on.
func (a *arranger) visit(i int) {
	a.state[i] = visiting
	a.trail = append(a.trail, i)
	parents := make([]int, 0, len(a.params[i].When))
	for name := range a.params[i].When {
		parents = append(parents, a.files[name])
	}
	slices.Sort(parents)
	for _, parent := range parents {
		switch a.state[parent] {
		case unvisited:
			a.visit(parent)
		case visiting:
			a.reportCycle(i, parent)
		}
	}
	a.trail = a.trail[:len(a.trail)-1]
	a.state[i] = visited
	a.order = append(a.order, i)
}

// reportCycle reports that i depends on a parameter that depends on i.
func (a *arranger) reportCycle(i, parent int) {
	var names []string
	for _, on := range a.trail[slices.Index(a.trail, parent):] {
		names = append(names, a.params[on].Name)
	}
	names = append(names, a.params[parent].Name)
	a.Add(fmt.Sprintf("%s[%d].when%s", a.path, i, check.Key(a.params[parent].Name)),
		"the conditions go in a circle: %s", strings.Join(names, " needs "))
}
