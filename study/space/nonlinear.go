package space

import (
	"fmt"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/fantasia-hpo/fantasia/study"
)

// unsampled says why no random point meets a constraint, though some points do; it is empty if
// nothing speaks against that. It looks for equalities of arithmetic over floats that are not
// solved: their points are a set of measure zero.
func (s *Space) unsampled(c *constraint, e ast.Expr) string {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return ""
	}
	left, right := e.AsCall().Args()[0], e.AsCall().Args()[1]
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd:
		if why := s.unsampled(c, left); why != "" {
			return why
		}
		return s.unsampled(c, right)
	case operators.Equals:
	default:
		return ""
	}
	floats := map[string]bool{}
	if !s.arithmetic(c, left, floats) || !s.arithmetic(c, right, floats) || len(floats) == 0 {
		return ""
	}
	const advice = "random points never meet such an equality: compute one of them in the program, or allow a tolerance, as in math.abs(a - b) <= 0.01"
	f, linear := s.form(c, left)
	g, too := s.form(c, right)
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
func (s *Space) arithmetic(c *constraint, e ast.Expr, floats map[string]bool) bool {
	switch e.Kind() {
	case ast.LiteralKind:
		_, ok := e.AsLiteral().(types.Double)
		return ok
	case ast.IdentKind:
		p, ok := s.Parameter(c.variables[e.AsIdent()])
		if ok && p.Type == study.Float && p.Step == nil {
			floats[p.Name] = true
		}
		return ok && numeric(p)
	case ast.CallKind:
		switch e.AsCall().FunctionName() {
		case operators.Negate, operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
		default:
			return false
		}
		for _, arg := range e.AsCall().Args() {
			if !s.arithmetic(c, arg, floats) {
				return false
			}
		}
		return true
	}
	return false
}
