package space

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// Constraint is a condition that points must meet.
type Constraint struct {
	// Source is its text, for messages.
	Source string
	// Names are the parameters that it mentions, sorted; at least one. A point without a value
	// for one of them meets the constraint.
	Names []string
	// Holds reports whether a point with values for all of Names meets the constraint. It may
	// be called concurrently.
	Holds func(study.Point) bool
	// Expr is its structure; nil if that is not known.
	Expr *Expr
}

// Expr is the structure of a constraint, as far as the space can make use of it: it finds points
// that meet linear conditions.
type Expr struct {
	Op Op
	// Number is that of OpNumber, Parameter the name of OpParameter.
	Number    float64
	Parameter string
	Args      []*Expr
}

// Op is what an Expr computes.
type Op int

// What an Expr computes. Those after OpParameter have two arguments, but for OpNegate and OpAbs.
const (
	OpOther Op = iota // anything else
	OpNumber
	OpParameter
	OpAnd
	OpAtMost  // also less than
	OpAtLeast // also more than
	OpEquals
	OpNegate
	OpAdd
	OpSubtract
	OpMultiply
	OpDivide
	OpAbs
)

// binary reports whether the expression is an operation of two arguments.
func (e *Expr) binary() bool { return e != nil && len(e.Args) == 2 }

// constraint is a constraint of a space, safe for concurrent use.
type constraint struct {
	Constraint
	// rows are the linear conditions that follow from it. equality says that these are
	// equalities and mean the same as the constraint.
	rows     []*row
	equality bool
}

// applies reports whether the point has a value for every parameter that the
// constraint mentions.
func (c *constraint) applies(p study.Point) bool {
	return !slices.ContainsFunc(c.Names, func(name string) bool { _, ok := p[name]; return !ok })
}

// holds reports whether the point meets the constraint, or lacks a parameter that it
// mentions. A constraint that cannot be evaluated (0/0 < 1) is not met. An equality of sums
// is met if they differ by no more than what rounding can do.
func (c *constraint) holds(p study.Point) bool {
	return !c.applies(p) || c.Holds(p) ||
		c.equality && !slices.ContainsFunc(c.rows, func(r *row) bool { return !r.nearly(p) })
}

// compileConstraints compiles the constraints into s.checks.
func (s *Space) compileConstraints(found *check.Problems, path string, spec *study.Spec, sound []bool, compile Constraints) {
	if len(spec.Parameters) > MaxParameters || slices.Contains(study.Names(spec.Parameters), "") {
		return
	}
	if len(spec.Constraints) > MaxConstraints {
		found.Add(path,
			"%d constraints are more than the most that a study can have, %d: join some with &&", len(spec.Constraints), MaxConstraints)
		return
	}
	for _, c := range compile(found, path, spec.Constraints, spec.Parameters, sound) {
		s.checks = append(s.checks, &constraint{Constraint: c})
	}
}
