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

// aims are what a study looks for.
type aims struct {
	objectives []study.Objective
	limits     []study.Limit
}

// single returns the aims of a study of one value.
func single(direction study.Direction) *aims {
	return &aims{objectives: []study.Objective{{Metric: metric, Direction: direction, Take: study.DefaultTake}}}
}

// several reports whether there are several objectives.
func (a *aims) several() bool { return len(a.objectives) > 1 }

// names returns the names of all criteria, without repeats.
func (a *aims) names() []string {
	names := study.MetricNames(a.objectives)
	for _, l := range a.limits {
		if !slices.Contains(names, l.Metric) {
			names = append(names, l.Metric)
		}
	}
	return names
}

// has reports whether there is a criterion of a name.
func (a *aims) has(name string) bool { return slices.Contains(a.names(), name) }

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

// early returns what is known early of a trial that has not completed, by name; nil if nothing is.
func (a *aims) early(metrics map[string]float64) map[string]float64 {
	var known map[string]float64
	for _, name := range a.names() {
		if v, ok := metrics[name]; ok && a.isEarly(name) {
			if known == nil {
				known = map[string]float64{}
			}
			known[name] = v
		}
	}
	return known
}

// isEarly reports whether a criterion is known early.
func (a *aims) isEarly(name string) bool {
	return slices.ContainsFunc(a.objectives, func(o study.Objective) bool { return o.Metric == name && o.Early }) ||
		slices.ContainsFunc(a.limits, func(l study.Limit) bool { return l.Metric == name && l.Early })
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
	a.checkEarly(o, add)
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

func (a *aims) checkEarly(o *Options, add complain) {
	if !a.several() && a.isEarly(a.objectives[0].Metric) {
		add("%q is Early, and the only objective; want that of limits of other metrics, or of one of several objectives", a.objectives[0].Metric)
	}
	if e := o.earlyStopping(a); e != nil && a.isEarly(e.Metric) {
		add("%q is Early, and Options.EarlyStopping stops trials by it; want a metric that changes while a trial runs", e.Metric)
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
	entry, err := o.algorithms().Find(cmp.Or(o.Algorithm.Name, lean.Default))
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
			all := slices.DeleteFunc(o.algorithms(), func(e lean.Entry) bool { return !lacks.has(e) })
			add("Options.Algorithm is %q, which takes no %s; want one of %s", entry.Name, lacks.what, strings.Join(all.Names(), ", "))
		}
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
