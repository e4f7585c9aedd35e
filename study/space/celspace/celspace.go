// Package celspace compiles search spaces as study files have them: their constraints are
// expressions of CEL. Programs without study files use package space alone, which does not link
// CEL.
package celspace

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// New compiles a search space as given in a study file. Its error is a *study.Problems
// with every problem; paths start with "parameters", "constraints" or "initial".
func New(params []study.Parameter, constraints []string, initial []map[string]any) (*space.Space, error) {
	found := &check.Problems{}
	compiled := Compile(found, "", &study.Spec{
		Parameters:  space.CloneParameters(params),
		Constraints: constraints,
		Initial:     slices.Clone(initial),
	})
	if err := found.Err(""); err != nil {
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
func Compile(found *check.Problems, prefix string, spec *study.Spec) *space.Space {
	return space.Compile(found, prefix, spec, constraints)
}

// ops are the functions of CEL that package space reasons about.
var ops = map[string]space.Op{
	operators.LogicalAnd: space.OpAnd, operators.Equals: space.OpEquals,
	operators.Less: space.OpAtMost, operators.LessEquals: space.OpAtMost,
	operators.Greater: space.OpAtLeast, operators.GreaterEquals: space.OpAtLeast,
	operators.Negate: space.OpNegate, operators.Add: space.OpAdd, operators.Subtract: space.OpSubtract,
	operators.Multiply: space.OpMultiply, operators.Divide: space.OpDivide, "math.abs": space.OpAbs,
}

// expr returns the structure of an expression.
func (c *compiler) expr(e ast.Expr) *space.Expr {
	switch e.Kind() {
	case ast.LiteralKind:
		if v, ok := e.AsLiteral().(types.Double); ok {
			return &space.Expr{Op: space.OpNumber, Number: float64(v)}
		}
	case ast.IdentKind:
		return &space.Expr{Op: space.OpParameter, Parameter: c.variables[e.AsIdent()]}
	case ast.CallKind:
		call := &space.Expr{Op: ops[e.AsCall().FunctionName()]}
		for _, arg := range e.AsCall().Args() {
			call.Args = append(call.Args, c.expr(arg))
		}
		return call
	}
	return &space.Expr{}
}
