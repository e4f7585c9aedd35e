package kubejob

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// costLimit limits the evaluation of a condition.
const costLimit = 1_000_000

// condition is a CEL expression over a resource (self) and its status. It is safe for
// concurrent use.
type condition struct{ program cel.Program }

// The default conditions, for kinds without conditions of their own in this package.
// Job, JobSet, TrainJob and Kubeflow's jobs have them.
const (
	defaultSuccess = `status.conditions.exists(c, c.type in ["Complete", "Completed", "Succeeded"] && c.status == "True")`
	defaultFailure = `status.conditions.exists(c, c.type == "Failed" && c.status == "True")`
)

// conditionsOf returns the expressions for a kind.
func conditionsOf(kind schema.GroupKind) (success, failure string) {
	switch kind {
	case schema.GroupKind{Group: "ray.io", Kind: "RayJob"}:
		return `status.jobStatus == "SUCCEEDED"`,
			`status.jobStatus in ["FAILED", "STOPPED"] || status.jobDeploymentStatus == "Failed"`
	case schema.GroupKind{Kind: "Pod"}:
		return `status.phase == "Succeeded"`, `status.phase == "Failed"`
	}
	return defaultSuccess, defaultFailure
}

func compileCondition(expression string) (*condition, error) {
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
	return &condition{program: program}, nil
}

// holds reports whether a resource meets the condition. A resource without a field that
// the condition uses does not, or not yet.
func (c *condition) holds(object map[string]any) bool {
	status, ok := object["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
	}
	result, _, err := c.program.Eval(map[string]any{"self": object, "status": status})
	return err == nil && result == types.True
}
