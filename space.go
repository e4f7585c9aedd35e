package fantasia

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// Space is a search space: the parameters of a study and the constraints between them. Its
// methods declare parameters and return them, to read their values with. What is wrong with a
// declaration is an error of [Minimize] and [Maximize]. A Space is not safe for concurrent use
// until the study is made, and does not change after that.
type Space struct {
	params      []study.Parameter
	constraints []space.Constraint
	made        bool
}

// NewSpace returns a space without parameters.
func NewSpace() *Space { return &Space{} }

// Value is the type of a parameter's values.
type Value interface{ float64 | int | string | bool }

// Param is a parameter of a [Space] with values of type T. It is immutable.
type Param[T Value] struct {
	space *Space
	name  string
}

// Parameter is a [Param] of any type.
type Parameter interface {
	// Name returns the parameter's name.
	Name() string
	of() *Space
}

// Name returns the parameter's name.
func (p Param[T]) Name() string { return p.name }

func (p Param[T]) of() *Space { return p.space }

// Of returns the parameter's value at a point, which is a [*Trial], a [Result] or a [Point]. It
// returns the zero value if the parameter is not active there: see [When]. It panics if the point
// is of another space.
func (p Param[T]) Of(at At) T {
	v, _ := p.Lookup(at)
	return v
}

// Lookup is like Of, and reports whether the parameter is active at the point.
func (p Param[T]) Lookup(at At) (T, bool) {
	point := at.point()
	if point.space != p.space {
		panic(fmt.Sprintf("fantasia: parameter %q is not of the space of this point", p.name))
	}
	raw, ok := point.values[p.name]
	if !ok {
		var zero T
		return zero, false
	}
	return typed[T](raw), true
}

// Is assigns a value to the parameter, for [Study.Enqueue], [Study.Add] and [Options].Initial.
func (p Param[T]) Is(value T) Assignment { return Assignment{p, value} }

// Assignment is a value of a parameter.
type Assignment struct {
	param Parameter
	value any
}

// typed converts a value of a point, which is a float64, an int64, a string or a bool.
func typed[T Value](raw any) (v T) {
	switch to := any(&v).(type) {
	case *float64:
		*to, _ = study.Number(raw)
	case *int:
		n, _ := study.Number(raw)
		*to = int(n)
	case *string:
		*to, _ = raw.(string)
	case *bool:
		*to, _ = raw.(bool)
	}
	return v
}

// At is where a parameter has a value: a [*Trial], a [Result] or a [Point].
type At interface{ point() Point }

// Point is a point of a space: the values of its active parameters.
type Point struct {
	space  *Space
	values study.Point
}

func (p Point) point() Point { return p }

// Values returns the values by name: float64, int64, string or bool. Do not change the map.
func (p Point) Values() map[string]any { return p.values }

// NumericOption is an option of a Float or an Int.
type NumericOption interface{ apply(p *study.Parameter) }

// numericOption is an option that is no condition.
type numericOption func(p *study.Parameter)

func (o numericOption) apply(p *study.Parameter) { o(p) }

var (
	// Log searches the parameter on a logarithmic scale. Its range must be above 0.
	Log NumericOption = numericOption(func(p *study.Parameter) { p.Scale = study.Log })
	// Logit searches the parameter on a scale that is fine at both ends. Its range must be
	// within 0 and 1.
	Logit NumericOption = numericOption(func(p *study.Parameter) { p.Scale = study.Logit })
)

// Step allows only values that are a multiple of step above the lower bound.
func Step(step float64) NumericOption {
	return numericOption(func(p *study.Parameter) { p.Step = &step })
}

// Prior says where you expect the best value of a Float or an Int: at mean, give or take sd. sd is a
// standard deviation in the parameter's unit, with Log in powers of ten, with Logit in logits. The
// optimiser begins there, and results outweigh a wrong guess. "bohb", "forest", "nsga2", "sobol", "grid"
// and "random" ignore it. It may change when the study is opened again.
func Prior(mean, sd float64) NumericOption {
	return numericOption(func(p *study.Parameter) { p.Prior = &study.Prior{Mean: &mean, SD: &sd} })
}

// ListedOption is an option of the other parameters: a [Condition], or [Weights].
type ListedOption interface{ applyListed(p *study.Parameter) }

// listedOption is an option that is no condition.
type listedOption func(p *study.Parameter)

func (o listedOption) applyListed(p *study.Parameter) { o(p) }

// Weights says how likely each value of a parameter is the best, in the order of the values; of a Bool,
// false comes first. Only their ratios count. The rest is as for [Prior].
func Weights(weights ...float64) ListedOption {
	return listedOption(func(p *study.Parameter) { p.Prior = &study.Prior{Weights: weights} })
}

// Condition makes a parameter active at some points only. It is an option of every parameter.
type Condition struct {
	param  Parameter
	values []any
}

// When makes a parameter active only where another one is active and has one of the values. A
// parameter with several conditions needs all of them.
func When[T Value](param Param[T], values ...T) Condition {
	c := Condition{param: param}
	for _, v := range values {
		c.values = append(c.values, v)
	}
	return c
}

func (c Condition) apply(p *study.Parameter) {
	if p.When == nil {
		p.When = map[string][]any{}
	}
	p.When[c.param.Name()] = c.values
}

func (c Condition) applyListed(p *study.Parameter) { c.apply(p) }

// Float declares a parameter with values from lo to hi.
func (s *Space) Float(name string, lo, hi float64, options ...NumericOption) Param[float64] {
	return numeric[float64](s, study.Parameter{Name: name, Type: study.Float, Min: &lo, Max: &hi}, options)
}

// Int declares a parameter with whole numbers from lo to hi, both included.
func (s *Space) Int(name string, lo, hi int, options ...NumericOption) Param[int] {
	least, most := float64(lo), float64(hi)
	return numeric[int](s, study.Parameter{Name: name, Type: study.Int, Min: &least, Max: &most}, options)
}

// Bool declares a parameter that is true or false.
func (s *Space) Bool(name string, options ...ListedOption) Param[bool] {
	return declare[bool](s, study.Parameter{Name: name, Type: study.Bool}, options)
}

// Choice declares a parameter whose values are texts without an order.
func (s *Space) Choice(name string, values []string, options ...ListedOption) Param[string] {
	return OneOf(s, name, values, options...)
}

// OneOf declares a parameter with the given values, which have no order.
func OneOf[T Value](s *Space, name string, values []T, options ...ListedOption) Param[T] {
	return declare[T](s, study.Parameter{Name: name, Type: study.Categorical, Values: list(values)}, options)
}

// Ordered declares a parameter with the given values, whose order has a meaning, such as
// "small", "medium" and "large".
func Ordered[T Value](s *Space, name string, values []T, options ...ListedOption) Param[T] {
	return declare[T](s, study.Parameter{Name: name, Type: study.Ordinal, Values: list(values)}, options)
}

// Fidelity declares how thoroughly a trial is evaluated, such as a number of epochs. It is not
// searched: trials begin at lo, and of each level the best one in reduction goes on to the next,
// which is reduction times as high. A study has at most one.
func (s *Space) Fidelity(name string, lo, hi, reduction int) Param[int] {
	least, most := float64(lo), float64(hi)
	return declare[int](s, study.Parameter{Name: name, Type: study.Fidelity, Min: &least, Max: &most, Reduction: &reduction}, nil)
}

// Require adds a constraint: only points for which holds returns true are evaluated. text
// describes it in messages. params are the parameters that holds reads: a point at which one of
// them is not active meets the constraint. holds must depend on nothing else, and may be called
// concurrently. Unlike the parameters, constraints are not kept in the state of a study, so a
// program must add the same ones when it opens the study again.
//
// A server cannot call a function. For a study on one, text must be the constraint as study files
// have it, such as "least < most", with the names of the parameters:
// https://github.com/fantasia-hpo/fantasia/blob/main/docs/tune/study-file.md describes them. Points
// for which holds still returns false are not given out, but told to be infeasible.
func (s *Space) Require(text string, holds func(Point) bool, params ...Parameter) {
	s.mustBeOpen("constraint", text)
	c := space.Constraint{Source: text, Holds: func(p study.Point) bool { return holds(Point{s, p}) }}
	for _, p := range params {
		c.Names = append(c.Names, p.Name())
	}
	slices.Sort(c.Names)
	c.Names = slices.Compact(c.Names)
	s.constraints = append(s.constraints, c)
}

// list returns values as those of a parameter.
func list[T Value](values []T) []any {
	list := make([]any, len(values))
	for i, v := range values {
		list[i], _ = study.Scalar(v) // what is not finite is refused with the study
	}
	return list
}

func numeric[T Value](s *Space, p study.Parameter, options []NumericOption) Param[T] {
	for _, o := range options {
		o.apply(&p)
	}
	return declare[T](s, p, nil)
}

func declare[T Value](s *Space, p study.Parameter, options []ListedOption) Param[T] {
	s.mustBeOpen("parameter", p.Name)
	for _, o := range options {
		o.applyListed(&p)
	}
	s.params = append(s.params, p)
	return Param[T]{s, p.Name}
}

// mustBeOpen panics if a study uses the space.
func (s *Space) mustBeOpen(what, name string) {
	if s.made {
		panic(fmt.Sprintf("fantasia: %s %q was added to the space of a study", what, name))
	}
}

// raw returns assignments as a raw point. The error wraps ErrInvalid.
func (s *Space) raw(values []Assignment) (map[string]any, error) {
	point := make(map[string]any, len(values))
	var errs []error
	for _, a := range values {
		switch {
		case a.param == nil:
			errs = append(errs, fmt.Errorf("%w: an empty Assignment: use Param.Is", ErrInvalid))
		case a.param.of() != s:
			errs = append(errs, fmt.Errorf("%w: parameter %q is not of the space of the study", ErrInvalid, a.param.Name()))
		default:
			point[a.param.Name()] = a.value
		}
	}
	return point, errors.Join(errs...)
}
