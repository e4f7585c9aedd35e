package fantasia

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/library"
	"github.com/fantasia-hpo/fantasia/study"
)

// Criterion is what a [StudyOf] judges a trial by: an objective or a limit. Its value is a function
// of the T that an evaluation returns. It is immutable.
type Criterion[T any] struct {
	name      string
	of        func(T) float64
	objective *study.Objective // nil for a limit
	limit     study.Limit
}

// Lowest is an objective: the lower its value, the better. name is its metric's name in records and
// reports, and of reads the value from what an evaluation returns.
func Lowest[T any](name string, of func(T) float64) Criterion[T] {
	return objective(name, study.Minimize, of)
}

// Highest is an objective: the higher its value, the better. The rest is as for [Lowest].
func Highest[T any](name string, of func(T) float64) Criterion[T] {
	return objective(name, study.Maximize, of)
}

func objective[T any](name string, direction study.Direction, of func(T) float64) Criterion[T] {
	return Criterion[T]{name: name, of: of, objective: &study.Objective{Metric: name, Direction: direction, Take: study.DefaultTake}}
}

// AtMost is a limit: only trials whose value is at most this large can be on the front. A value that
// is not finite is outside of the limit. name and of are as for [Lowest].
func AtMost[T any](name string, most float64, of func(T) float64) Criterion[T] {
	return Criterion[T]{name: name, of: of, limit: study.Limit{Metric: name, Max: &most}}
}

// AtLeast is a limit: only trials whose value is at least this large can be on the front. The rest is
// as for [AtMost].
func AtLeast[T any](name string, least float64, of func(T) float64) Criterion[T] {
	return Criterion[T]{name: name, of: of, limit: study.Limit{Metric: name, Min: &least}}
}

// Reference returns the objective with the worst value that is still of interest. Of several
// objectives, "hebo" and "gp" then look for points that are better in each of them, and Options.Goal
// needs it. It panics if the criterion is a limit.
func (c Criterion[T]) Reference(worst float64) Criterion[T] {
	if c.objective == nil {
		panic(fmt.Sprintf("fantasia: the limit of %q has no reference; objectives have one", c.name))
	}
	o := *c.objective
	o.Reference = &worst
	c.objective = &o
	return c
}

// Early returns the criterion as one whose value is known before an evaluation ends, and then stays the
// same, such as a model's size. Let the evaluation [Criterion.Report] it at once. "hebo" and "gp" then
// learn it, and nothing else, also from trials that are stopped early, fail or are infeasible; the other
// algorithms ignore it. It is for limits, and for one of two or three objectives, but not for the metric of
// Options.EarlyStopping. Do not use it for a value that changes while a trial runs, such as an accuracy.
func (c Criterion[T]) Early() Criterion[T] {
	if c.objective == nil {
		c.limit.Early = true
		return c
	}
	o := *c.objective
	o.Early = true
	c.objective = &o
	return c
}

// Name returns the metric's name.
func (c Criterion[T]) Name() string { return c.name }

// Of returns the value that was measured for a trial; NaN if none was. A trial that has not completed
// has one only of criteria that are known [Criterion.Early].
func (c Criterion[T]) Of(r Result) float64 { return library.Metric(r.metrics, c.name) }

// Report is [Trial.Report] for this criterion: it says what value it has reached at a step, which must
// grow from report to report of the criterion. A value that is known early needs a single report, at
// step 0 for example. The error wraps ErrInvalid if the trial's study does not have the criterion.
func (c Criterion[T]) Report(t *Trial, step int, value float64) error {
	if known := t.study.criteria; !slices.Contains(known, c.name) {
		return fmt.Errorf("%w: the study of trial %d has no criterion %q; want one of %s",
			ErrInvalid, t.Number(), c.name, strings.Join(known, ", "))
	}
	return t.report(c.name, step, value)
}

// Curve is [Study.Curve] for this criterion: what a trial has reported by Report.
func (c Criterion[T]) Curve(s *StudyOf[T], trial int) ([]Measurement, error) {
	return s.study.curve(trial, c.name)
}

// Expected returns what the optimiser's model expects of an objective at the point of a trial on the
// recommended front: the mean and the standard deviation. Without a model, and for a limit, these are
// the value that was measured and 0.
func (c Criterion[T]) Expected(o Optimal) (mean, sd float64) {
	if e, ok := o.expected[c.name]; ok {
		return e.Mean, e.SD
	}
	return c.Of(o.Trial), 0
}

// parts returns the objectives and the limits among criteria. The error wraps ErrInvalid.
func parts[T any](criteria []Criterion[T]) (objectives []study.Objective, limits []study.Limit, _ error) {
	var errs []error
	for i, c := range criteria {
		switch {
		case c.of == nil:
			errs = append(errs, fmt.Errorf("%w: criterion %d, %q, has no function; want one that returns its value", ErrInvalid, i+1, c.name))
		case c.objective != nil:
			objectives = append(objectives, *c.objective)
		default:
			limits = append(limits, c.limit)
		}
	}
	if len(objectives) == 0 {
		errs = append(errs, fmt.Errorf("%w: no criterion is an objective; want one of Lowest or Highest", ErrInvalid))
	}
	return objectives, limits, errors.Join(errs...)
}

// measure returns the values of criteria for what an evaluation has returned.
func measure[T any](criteria []Criterion[T], v T) (m library.Measured) {
	objectives := map[string]bool{}
	for _, c := range criteria {
		if c.objective != nil {
			m.Values = append(m.Values, c.of(v))
			objectives[c.name] = true
		}
	}
	for _, c := range criteria {
		if c.objective != nil || objectives[c.name] {
			continue
		}
		if m.Metrics == nil {
			m.Metrics = map[string]float64{}
		}
		m.Metrics[c.name] = c.of(v)
	}
	return m
}
