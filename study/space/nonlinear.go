package space

import (
	"fmt"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// unsampled says why no random point meets a constraint, though some points do; it is empty if
// nothing speaks against that. It looks for equalities of arithmetic over floats that are not
// solved: their points are a set of measure zero.
func (s *Space) unsampled(c *constraint, e *Expr) string {
	if !e.binary() {
		return ""
	}
	left, right := e.Args[0], e.Args[1]
	switch e.Op {
	case OpAnd:
		if why := s.unsampled(c, left); why != "" {
			return why
		}
		return s.unsampled(c, right)
	case OpEquals:
	default:
		return ""
	}
	floats := map[string]bool{}
	if !s.arithmetic(left, floats) || !s.arithmetic(right, floats) || len(floats) == 0 {
		return ""
	}
	const advice = "random points never meet such an equality: compute one of them in the program, or allow a tolerance, as in math.abs(a " +
		"- b) <= 0.01"
	f, linear := s.form(left)
	g, too := s.form(right)
	if !linear || !too {
		return "it is not linear in the floats: " + advice
	}
	unsolved := ""
	for name := range f.plus(g, -1).weights {
		switch {
		case s.movable(name):
			if len(c.rows) > 0 {
				return "" // it is solved for this one
			}
			unsolved = max(unsolved, name)
		case floats[name]:
			unsolved = max(unsolved, name)
		}
	}
	if unsolved == "" {
		return ""
	}
	return fmt.Sprintf("no float in it has the linear scale, and neither a step nor a condition (%s, for example): %s", unsolved, advice)
}

// arithmetic reports whether an expression is a sum, product or quotient of numbers and numeric
// parameters, and collects the floats without steps.
func (s *Space) arithmetic(e *Expr, floats map[string]bool) bool {
	switch e.Op {
	case OpNumber:
		return true
	case OpParameter:
		p, ok := s.Parameter(e.Parameter)
		if ok && p.Type == study.Float && p.Step == nil {
			floats[p.Name] = true
		}
		return ok && p.Numeric()
	case OpNegate, OpAdd, OpSubtract, OpMultiply, OpDivide:
		return !slices.ContainsFunc(e.Args, func(arg *Expr) bool { return !s.arithmetic(arg, floats) })
	}
	return false
}
