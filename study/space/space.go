// Package space compiles the search space of a study: which parameters are active at a
// point, which points meet the constraints, and how many points there are.
package space

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// Space is a compiled search space: parameters in dependency order, conditions
// and constraints ready to evaluate. It is immutable and safe for concurrent use.
type Space struct {
	params []study.Parameter
	// order holds the names of params, index their positions, conds their conditions.
	order   []string
	index   map[string]int
	conds   [][]condition
	checks  []*constraint
	initial []study.Point
	size    int
	finite  bool
	// fidelity is the position of the fidelity in params, -1 if there is none; searched is
	// the space without it, nil if there is none.
	fidelity int
	searched *Space
	// solver meets the linear constraints that random points do not; nil if there are none.
	solver *solver
	// balances are the equalities of whole numbers that are solved.
	balances []*balance
}

// condition is one entry of a parameter's When: the index of the parameter that it
// tests, and the accepted values.
type condition struct {
	parent int
	values []any
}

// New compiles a search space. Its error is a *study.Problems with every problem; paths
// start with "parameters", "constraints" or "initial". Package celspace compiles constraints
// that are texts.
func New(params []study.Parameter, constraints []Constraint, initial []map[string]any) (*Space, error) {
	problems := &check.Problems{}
	spec := &study.Spec{Parameters: CloneParameters(params), Initial: slices.Clone(initial)}
	space := Compile(problems, "", spec, func(found *check.Problems, path string, _ []string, _ []study.Parameter, _ []bool) []Constraint {
		for i, c := range constraints {
			at := fmt.Sprintf("%s[%d]", path, i)
			found.AddIf(len(c.Names) == 0, at, "it names no parameter, so it is the same for every point: name at least one")
			for _, name := range c.Names {
				known := slices.ContainsFunc(params, func(p study.Parameter) bool { return p.Name == name })
				found.AddIf(!known, at, "unknown parameter %q; want one of %s", name, strings.Join(study.Names(params), ", "))
			}
		}
		return constraints
	})
	if err := problems.Err(""); err != nil {
		return nil, err
	}
	return space, nil
}

// Of compiles the search space of a study without constraints. It refuses a study that has
// some: package celspace compiles those.
func Of(s *study.Study) (*Space, error) {
	if len(s.Spec.Constraints) > 0 {
		return nil, fmt.Errorf("the study has constraints, such as %q, which this program cannot compile", s.Spec.Constraints[0])
	}
	return New(s.Spec.Parameters, nil, s.Spec.Initial)
}

// Constraints compiles the constraints of a study, and reports their problems at path. Not all
// parameters may be sound, and a problem of one that is not has been reported.
type Constraints func(r *check.Problems, path string, sources []string, params []study.Parameter, sound []bool) []Constraint

// CloneParameters copies everything in the parameters that Compile fills in.
func CloneParameters(params []study.Parameter) []study.Parameter {
	params = slices.Clone(params)
	for i := range params {
		p := &params[i]
		p.Values, p.When = slices.Clone(p.Values), maps.Clone(p.When)
		for name, values := range p.When {
			p.When[name] = slices.Clone(values)
		}
	}
	return params
}

// Compile checks and compiles the space of spec; it returns nil after a problem that
// prevents that. It sets the defaults in spec's parameters and converts the values of
// parameters and initial points to their types. Paths of problems start with prefix.
func Compile(found *check.Problems, prefix string, spec *study.Spec, constraints Constraints) *Space {
	before := found.Failed
	sound := checkParameters(found, prefix+"parameters", spec.Parameters)
	checkFidelities(found, prefix+"parameters", spec.Parameters)
	s := &Space{index: make(map[string]int), fidelity: -1}
	s.arrange(found, prefix+"parameters", spec.Parameters, sound)
	s.compileConstraints(found, prefix+"constraints", spec, sound, constraints)
	if found.Failed > before {
		return nil
	}
	s.size, s.finite = s.count()
	s.deriveRows()
	s.solver, s.balances = s.newSolver(), s.newBalances()
	s.deriveSearched()
	s.compileInitial(found, prefix+"initial", spec.Initial)
	if found.Failed == before {
		s.checkSatisfiable(found, prefix)
	}
	return s
}

// Parameters returns the parameters with their defaults filled in, each after those
// that its When names, otherwise in the study file's order. Do not change the slice: it
// belongs to the space.
func (s *Space) Parameters() []study.Parameter { return s.params }

// Parameter returns the parameter with that name.
func (s *Space) Parameter(name string) (study.Parameter, bool) {
	i, ok := s.index[name]
	if !ok {
		return study.Parameter{}, false
	}
	return s.params[i], true
}

// Initial returns the initial points, in the study file's order. A point may be
// partial: the optimiser samples the missing values. Fixed parameters that are certain
// to be active are filled in. Do not change the points: they belong to the space.
func (s *Space) Initial() []study.Point { return s.initial }

// Active reports whether the parameter with that name is active, given the point's
// other values: whether each parameter that its When names is active and has one of the
// listed values. It is false for a name that the space does not have.
func (s *Space) Active(p study.Point, name string) bool {
	i, ok := s.index[name]
	return ok && s.active(p, i)
}

// active is Active by index. It terminates because no When leads back to itself.
func (s *Space) active(p study.Point, i int) bool {
	for _, c := range s.conds[i] {
		value, ok := p[s.params[c.parent].Name]
		if !ok || !study.Contains(c.values, value) || !s.active(p, c.parent) {
			return false
		}
	}
	return true
}

// Feasible reports whether the point satisfies every constraint. A constraint counts as
// met if it names a parameter without a value in the point: an inactive one, or one
// that a partial point leaves open.
func (s *Space) Feasible(p study.Point) bool {
	return !slices.ContainsFunc(s.checks, func(c *constraint) bool { return !c.holds(p) })
}

// Unmet returns the constraints that the point does not meet, as they are written.
func (s *Space) Unmet(p study.Point) []string {
	var sources []string
	for _, c := range s.checks {
		if !c.holds(p) {
			sources = append(sources, c.Source)
		}
	}
	return sources
}

// Size returns the number of points, ignoring constraints. finite is false if a float
// has no step, or if there are too many points to count: more than 2^53, or more than
// 2^17 combinations of the values that conditions depend on.
func (s *Space) Size() (n int, finite bool) { return s.size, s.finite }

// compileInitial checks the initial points and stores them as points.
func (s *Space) compileInitial(found *check.Problems, path string, initial []map[string]any) {
	keys := make(map[string]int)
	for i, raw := range initial {
		at := fmt.Sprintf("%s[%d]", path, i)
		before := found.Failed
		p := s.normalize(raw, func(name string, known bool, message string) {
			if known {
				found.Add(at+check.Key(name), "%s", message)
			} else {
				found.AddKey(at+check.Key(name), "%s", message)
			}
		})
		for name := range p {
			found.AddIf(s.params[s.index[name]].Type == study.Fidelity, at+check.Key(name),
				"is a fidelity: every initial point starts at its lowest level; leave it out")
		}
		if found.Failed > before || found.IsBroken(at) {
			continue
		}
		for _, c := range s.checks {
			found.AddIf(!c.holds(p), at, "the point does not meet the constraint %q", c.Source)
		}
		if s.Searched().Check(p) == nil {
			if first, ok := keys[s.Key(p)]; ok {
				found.Add(at, "the point is the same as initial[%d]: each is run once", first)
			} else {
				keys[s.Key(p)] = i
			}
		}
		initial[i] = p
		s.initial = append(s.initial, p)
	}
	s.Searched().initial = s.initial
}
