// Package celspace compiles search spaces as study files have them: their constraints are
// expressions of CEL. Programs without study files use package space alone, which does not link
// CEL.
package celspace

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// New compiles a search space as given in a study file. Its error is a *study.Problems
// with every problem; paths start with "parameters", "constraints" or "initial".
func New(params []study.Parameter, constraints []string, initial []map[string]any) (*space.Space, error) {
	r := &check.Report{}
	compiled := Compile(r, "", &study.Spec{
		Parameters:  space.CloneParameters(params),
		Constraints: constraints,
		Initial:     slices.Clone(initial),
	})
	if err := r.Err(""); err != nil {
		return nil, err
	}
	return compiled, nil
}

// Of compiles the study's search space.
func Of(s *study.Study) (*space.Space, error) {
	return New(s.Spec.Parameters, s.Spec.Constraints, s.Spec.Initial)
}

// Compile checks and compiles the space of spec; it returns nil after a problem that
// prevents that. It sets the defaults in spec's parameters and converts the values of
// parameters and initial points to their types. Paths of problems start with prefix.
func Compile(r *check.Report, prefix string, spec *study.Spec) *space.Space {
	return space.Compile(r, prefix, spec, constraints)
}
