package fantasia

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/optimizer/registry/lean"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
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

// Name returns the metric's name.
func (c Criterion[T]) Name() string { return c.name }

// Of returns the value that was measured for a trial; NaN if it has not completed.
func (c Criterion[T]) Of(r Result) float64 { return metricOf(r.metrics, c.name) }

// Expected returns what the optimiser's model expects of an objective at the point of a trial on the
// recommended front: the mean and the standard deviation. Without a model, and for a limit, these are
// the value that was measured and 0.
func (c Criterion[T]) Expected(o Optimal) (mean, sd float64) {
	if e, ok := o.expected[c.name]; ok {
		return e.mean, e.sd
	}
	return c.Of(o.Trial), 0
}

// metricOf returns a metric; NaN if it was not measured.
func metricOf(metrics map[string]float64, name string) float64 {
	if v, ok := metrics[name]; ok {
		return v
	}
	return math.NaN()
}

// aims are what a study looks for.
type aims struct {
	objectives []study.Objective
	limits     []study.Limit
}

// single returns the aims of a study of one value.
func single(direction study.Direction) *aims {
	return &aims{objectives: []study.Objective{{Metric: metric, Direction: direction, Take: study.DefaultTake}}}
}

// measured is what an evaluation has found: the objectives' values in their order, and the metrics of
// limits.
type measured struct {
	values  study.Values
	metrics map[string]float64
}

// aimsOf returns the aims that criteria describe. The error wraps ErrInvalid.
func aimsOf[T any](criteria []Criterion[T]) (*aims, error) {
	a := &aims{}
	var errs []error
	for i, c := range criteria {
		switch {
		case c.of == nil:
			errs = append(errs, fmt.Errorf("%w: criterion %d, %q, has no function; want one that returns its value", ErrInvalid, i+1, c.name))
		case c.objective != nil:
			a.objectives = append(a.objectives, *c.objective)
		default:
			a.limits = append(a.limits, c.limit)
		}
	}
	if len(a.objectives) == 0 {
		errs = append(errs, fmt.Errorf("%w: no criterion is an objective; want one of Lowest or Highest", ErrInvalid))
	}
	return a, errors.Join(errs...)
}

// measure returns the values of criteria for what an evaluation has returned.
func measure[T any](criteria []Criterion[T], v T) (m measured) {
	objectives := map[string]bool{}
	for _, c := range criteria {
		if c.objective != nil {
			m.values = append(m.values, c.of(v))
			objectives[c.name] = true
		}
	}
	for _, c := range criteria {
		if c.objective != nil || objectives[c.name] {
			continue
		}
		if m.metrics == nil {
			m.metrics = map[string]float64{}
		}
		m.metrics[c.name] = c.of(v)
	}
	return m
}

// several reports whether there are several objectives.
func (a *aims) several() bool { return len(a.objectives) > 1 }

// reported returns the metric that Trial.Report tells.
func (a *aims) reported(o *Options) string {
	return cmp.Or(o.EarlyStopping.Metric, a.objectives[0].Metric)
}

// fill sets what a study file says about the aims.
func (a *aims) fill(spec *study.Spec, goal *float64) {
	spec.Limits = a.limits
	if !a.several() {
		spec.Objective = a.objectives[0]
		spec.Objective.Goal = goal
		return
	}
	if spec.Several = a.objectives; goal != nil {
		spec.Goal = &study.FrontGoal{Hypervolume: *goal}
	}
}

// metrics returns what was measured of a trial, by name.
func (a *aims) metrics(values study.Values, others map[string]float64) map[string]float64 {
	all := make(map[string]float64, len(values)+len(others))
	for name, v := range others {
		all[name] = v
	}
	for k := range min(len(values), len(a.objectives)) {
		all[a.objectives[k].Metric] = values[k]
	}
	return all
}

// front returns trials on a front, the best in the first objective first, with its knee.
func (a *aims) front(trials []Result) []Optimal {
	values := make([]study.Values, len(trials))
	for i := range trials {
		for k := range a.objectives {
			values[i] = append(values[i], metricOf(trials[i].metrics, a.objectives[k].Metric))
		}
	}
	on, knee := front.Ordered(a.objectives, values)
	list := make([]Optimal, len(on))
	for k, i := range on {
		list[k] = Optimal{Trial: trials[i], Knee: i == knee}
	}
	return list
}

// nothing returns why there is no front: an error that wraps ErrNothing.
func (a *aims) nothing() error {
	if len(a.limits) > 0 {
		return fmt.Errorf("%w within all limits", ErrNothing)
	}
	return ErrNothing
}

// expectation is a model's mean and standard deviation.
type expectation struct{ mean, sd float64 }

// expect returns the means and standard deviations of the objectives by name.
func (a *aims) expect(means, sds []float64) map[string]expectation {
	all := make(map[string]expectation, len(means))
	for k := range min(len(means), len(sds), len(a.objectives)) {
		all[a.objectives[k].Metric] = expectation{means[k], sds[k]}
	}
	return all
}

// check returns what is wrong with the aims, for a study of this process. A server checks them
// itself.
func (a *aims) check(s *Space, o *Options) error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if n := len(a.objectives); n > study.MaxObjectives {
		add("%d objectives; want at most %d", n, study.MaxObjectives)
	}
	if n := len(a.limits); n > study.MaxLimits {
		add("%d limits; want at most %d", n, study.MaxLimits)
	}
	var names []string
	for _, c := range a.objectives {
		a.checkName(c.Metric, add)
		if slices.Contains(names, c.Metric) {
			add("two objectives have the name %q; want a name of its own for each", c.Metric)
		}
		names = append(names, c.Metric)
		switch {
		case c.Reference == nil:
		case !a.several():
			add("objective %q has a reference; want none, since it is the only objective", c.Metric)
		case !finite(*c.Reference):
			add("the reference of objective %q is %v; want a finite number", c.Metric, *c.Reference)
		}
	}
	a.checkLimits(add)
	a.checkGoal(o.Goal, add)
	a.checkRest(s, o, add)
	return errors.Join(errs...)
}

// complain notes a problem.
type complain func(format string, args ...any)

func (a *aims) checkName(name string, add complain) {
	if name == "" || len(name) > space.MaxName || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		add("a criterion has the name %q; want 1 to %d bytes without spaces", name, space.MaxName)
	}
}

func (a *aims) checkLimits(add complain) {
	seen := map[string]bool{}
	for _, l := range a.limits {
		a.checkName(l.Metric, add)
		if !finite(l.Bound()) {
			add("the limit of %q is %v; want a finite number", l.Metric, l.Bound())
		}
		side := fmt.Sprint(l.Metric, l.Max != nil)
		if seen[side] {
			add("%q has two limits on the same side; want at most one AtMost and one AtLeast", l.Metric)
		}
		seen[side] = true
	}
}

func (a *aims) checkGoal(goal *float64, add complain) {
	switch {
	case goal == nil:
	case !finite(*goal):
		add("Options.Goal is %v; want a finite number", *goal)
	case !a.several():
	case *goal <= 0:
		add("Options.Goal is %v; want a hypervolume above 0", *goal)
	case front.References(a.objectives) == nil:
		add("Options.Goal is a hypervolume; want 2 to %d objectives, each with a Reference", study.MaxVolume)
	}
}

// checkRest checks that the space and the options fit the aims.
func (a *aims) checkRest(s *Space, o *Options, add complain) {
	if !a.several() && len(a.limits) == 0 {
		return
	}
	if slices.ContainsFunc(s.params, func(p study.Parameter) bool { return p.Type == study.Fidelity }) {
		add("the space has a Fidelity, whose trials are promoted by one objective alone; want a study without limits and other objectives")
	}
	entry, err := lean.Entries().Find(cmp.Or(o.Algorithm.Name, lean.Default))
	if err != nil {
		return // Options.check says it
	}
	for _, lacks := range []struct {
		it   bool
		what string
		has  func(lean.Entry) bool
	}{
		{a.several() && !entry.Several, "several objectives", func(e lean.Entry) bool { return e.Several }},
		{len(a.limits) > 0 && !entry.Limits, "limits", func(e lean.Entry) bool { return e.Limits }},
	} {
		if lacks.it {
			all := slices.DeleteFunc(lean.Entries(), func(e lean.Entry) bool { return !lacks.has(e) })
			add("Options.Algorithm is %q, which takes no %s; want one of %s", entry.Name, lacks.what, strings.Join(all.Names(), ", "))
		}
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
