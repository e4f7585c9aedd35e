package jobpolicy

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// costLimit limits the evaluation of a condition.
const costLimit = 1_000_000

// Condition is a CEL expression over a resource (self) and its status. It is safe for
// concurrent use.
type Condition struct{ program cel.Program }

// NewCondition compiles an expression. The error names it, and where it is wrong.
func NewCondition(expression string) (*Condition, error) {
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType), cel.Variable("status", cel.DynType))
	if err != nil {
		return nil, fmt.Errorf("condition %q: %w", expression, err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, fmt.Errorf("condition %q: %w", expression, issues.Err())
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("condition %q is %s, must be true or false", expression, t)
	}
	program, err := env.Program(ast, cel.CostLimit(costLimit))
	if err != nil {
		return nil, fmt.Errorf("condition %q: %w", expression, err)
	}
	return &Condition{program: program}, nil
}

// Holds reports whether a resource meets the condition. A resource without a field that
// the condition uses does not, or not yet.
func (c *Condition) Holds(object map[string]any) bool {
	status, ok := object["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
	}
	result, _, err := c.program.Eval(map[string]any{"self": object, "status": status})
	return err == nil && result == types.True
}
