package celspace

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/fantasia-hpo/fantasia/study/space"
)

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
