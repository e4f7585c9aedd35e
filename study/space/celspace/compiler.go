package celspace

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// maxConstraint is the largest length of a constraint, in characters.
const maxConstraint = 1000

// modulo is the function that replaces %, which CEL has only for integers.
const modulo = "mod"

// activation provides the values of a point to a constraint.
type activation struct {
	variables map[string]string
	point     study.Point
}

// ResolveName returns the value of a variable, as a double unless it is a bool.
func (a activation) ResolveName(variable string) (any, bool) {
	name, ok := a.variables[variable]
	if !ok {
		return nil, false
	}
	if value, ok := a.point[name].(bool); ok {
		return types.Bool(value), true
	}
	value, ok := study.Number(a.point[name])
	return types.Double(value), ok
}

// Parent returns nil, as there is nothing besides the point.
func (a activation) Parent() cel.Activation { return nil }

// variableName returns the name of a parameter in a constraint: its characters other than
// letters, digits and dots are underscores, because CEL would parse a dash as a minus.
func variableName(name string) string {
	variable := strings.Map(func(c rune) rune {
		if check.IsLetter(c) || check.IsDigit(c) || c == '.' {
			return c
		}
		return '_'
	}, name)
	if name != "" && check.IsDigit(rune(name[0])) {
		return "_" + variable
	}
	return variable
}

// constraints compiles the texts of constraints. Any of them may name an invalid parameter, to
// avoid follow-up problems.
func constraints(found *check.Problems, path string, sources []string, params []study.Parameter, sound []bool) []space.Constraint {
	if len(sources) == 0 {
		return nil
	}
	compiler, err := newCompiler(params, sound)
	if err != nil {
		found.Add(path, "constraints over these parameters cannot be compiled: %s", err)
		return nil
	}
	var list []space.Constraint
	for i, source := range sources {
		at := fmt.Sprintf("%s[%d]", path, i)
		if found.IsBroken(at) {
			continue
		}
		c, err := compiler.compile(source)
		if err != nil {
			found.Add(at, "%q: %s", source, err)
			continue
		}
		list = append(list, c)
	}
	return list
}

// compiler compiles constraints over the numeric and boolean parameters of a space.
type compiler struct {
	env       *cel.Env
	variables map[string]string
	others    map[string]study.Type
	// shared are the names that several parameters have in a constraint, so that none can
	// be used.
	shared map[string]string
}

func newCompiler(params []study.Parameter, sound []bool) (*compiler, error) {
	c := &compiler{variables: make(map[string]string), others: make(map[string]study.Type), shared: make(map[string]string)}
	options := []cel.EnvOption{
		cel.ClearMacros(), // without loops, the time of an evaluation is bounded by the text
		ext.Math(),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxConstraint),
		cel.ParserRecursionLimit(50),
		cel.Function(modulo, cel.Overload("mod_double_double", []*cel.Type{cel.DoubleType, cel.DoubleType},
			cel.DoubleType, cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				return types.Double(math.Mod(float64(a.(types.Double)), float64(b.(types.Double))))
			}))),
	}
	doubtful, first := make(map[string]bool), make(map[string]string)
	for i, p := range params {
		if other, ok := first[variableName(p.Name)]; ok && other != p.Name {
			c.shared[variableName(p.Name)] = fmt.Sprintf("%q and %q would both be %s in a constraint: rename one", other, p.Name,
				variableName(p.Name))
		} else if !ok {
			first[variableName(p.Name)] = p.Name
		}
		doubtful[variableName(p.Name)] = doubtful[variableName(p.Name)] || !sound[i]
	}
	for i, p := range params {
		variable := variableName(p.Name)
		kind := cel.DoubleType
		if c.shared[variable] != "" {
			continue
		}
		switch {
		case p.Boolean() && doubtful[variable]:
			kind = cel.DynType
		case p.Boolean():
			kind = cel.BoolType
		}
		if sound[i] && !p.Numeric() && !p.Boolean() {
			c.others[variable] = p.Type
			continue
		}
		if slices.Contains([]string{"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"}, variable) {
			continue // CEL takes it for the type, and reports that
		}
		if _, ok := c.variables[variable]; ok {
			continue // a second one of that name
		}
		c.variables[variable] = p.Name
		options = append(options, cel.Variable(variable, kind))
	}
	var err error
	c.env, err = cel.NewEnv(options...)
	return c, err
}

// compile compiles one constraint.
func (c *compiler) compile(source string) (space.Constraint, error) {
	parsed, issues := c.env.Parse(source)
	if issues.Err() != nil {
		return space.Constraint{}, c.explain(source, issues)
	}
	if err := inexactLiteral(parsed.NativeRep()); err != nil {
		return space.Constraint{}, err
	}
	allDoubles(parsed.NativeRep().Expr())
	checked, issues := c.env.Check(parsed)
	if issues.Err() != nil {
		return space.Constraint{}, c.explain(source, issues)
	}
	if out := checked.OutputType(); out != cel.BoolType && out != cel.DynType {
		return space.Constraint{}, fmt.Errorf("its value is a %s: a constraint is true or false, as in a <= b", checked.OutputType())
	}
	names := make(map[string]bool)
	for _, reference := range checked.NativeRep().ReferenceMap() {
		if name, ok := c.variables[reference.Name]; ok {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return space.Constraint{}, fmt.Errorf("it names no parameter, so it is the same for every point: name at least one")
	}
	program, err := c.env.Program(checked)
	if err != nil {
		return space.Constraint{}, err
	}
	return space.Constraint{
		Source: source,
		Names:  slices.Sorted(maps.Keys(names)),
		Holds: func(p study.Point) bool {
			result, _, err := program.Eval(activation{c.variables, p})
			return err == nil && result == types.True
		},
		Expr: c.expr(checked.NativeRep().Expr()),
	}, nil
}

// inexactLiteral returns an error for a whole number that would lose digits as a double.
func inexactLiteral(parsed *ast.AST) (err error) {
	ast.PostOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.LiteralKind {
			return
		}
		var beyond bool
		switch literal := e.AsLiteral().(type) {
		case types.Int:
			beyond = literal > study.MaxExact || literal < -study.MaxExact
		case types.Uint:
			beyond = literal > study.MaxExact
		}
		if beyond {
			err = fmt.Errorf("character %d: %v is beyond ±%d (2^53-1), where whole numbers lose digits: write it with an exponent, as in 1e16",
				parsed.SourceInfo().GetStartLocation(e.ID()).Column()+1, e.AsLiteral().Value(), study.MaxExact)
		}
	}))
	return err
}

// allDoubles converts every integer literal to a double, and every % to a mod.
func allDoubles(e ast.Expr) {
	factory := ast.NewExprFactory()
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.LiteralKind:
			switch literal := e.AsLiteral().(type) {
			case types.Int:
				e.SetKindCase(factory.NewLiteral(e.ID(), types.Double(literal)))
			case types.Uint:
				e.SetKindCase(factory.NewLiteral(e.ID(), types.Double(literal)))
			}
		case ast.CallKind:
			if call := e.AsCall(); call.FunctionName() == operators.Modulo {
				e.SetKindCase(factory.NewCall(e.ID(), modulo, call.Args()...))
			}
		}
	}))
}

// explain formats the compiler's issues in one line, with a hint if a constraint names
// a parameter that it cannot use or must write otherwise.
func (c *compiler) explain(source string, issues *cel.Issues) error {
	var texts []string
	for _, e := range issues.Errors() {
		message, _, _ := strings.Cut(e.Message, "\n")
		if rest, ok := strings.CutPrefix(message, "undeclared reference to '"); ok {
			name, _, _ := strings.Cut(rest, "'")
			message = c.undeclared(source, name, message)
		}
		if n := len(texts); n > 0 && strings.HasSuffix(texts[n-1], ": "+message) {
			continue // of another part of the same name
		}
		texts = append(texts, fmt.Sprintf("character %d: %s", e.Location.Column()+1, message))
	}
	return fmt.Errorf("%s", strings.Join(texts, "; "))
}

// undeclared explains what is wrong with a name that is not a variable. message is the
// compiler's.
func (c *compiler) undeclared(source, name, message string) string {
	if problem := c.shared[name]; problem != "" {
		return problem
	}
	if kind := c.others[name]; kind == study.Fidelity {
		return fmt.Sprintf("%s is a fidelity: whether a point is accepted does not depend on how thoroughly it is evaluated", name)
	}
	if kind, ok := c.others[name]; ok {
		return fmt.Sprintf("%s is a %s parameter: a constraint can only use parameters whose values are all numbers, or all true or false", name,
			kind)
	}
	for _, variable := range slices.Sorted(maps.Keys(c.variables)) {
		parameter := c.variables[variable]
		if variable != parameter && strings.Contains(source, parameter) && strings.Contains(parameter, name) {
			return fmt.Sprintf("in a constraint, write %s for %s", variable, parameter)
		}
	}
	// The compiler also proposes functions and types of its own.
	if text, hint, ok := strings.Cut(message, " (did you mean '"); ok {
		if _, ok := c.variables[strings.TrimSuffix(hint, "'?)")]; !ok {
			return text
		}
	}
	return message
}
