package study

import (
	"bytes"
	"fmt"
	"slices"
)

// Compatible returns the differences that prevent a changed study from continuing with
// the state of the old one; none if it can. These fields must not change: the study's
// name, each objective's metric, direction, take and early, the names, types, scales, steps,
// conditions and order of the parameters, the
// constraints, the metric of the cost, the algorithm with its seed and settings, what the study learns from, and the
// command, Job and metrics, since they determine what is measured; and early stopping, whose
// rule compares trials with earlier ones. The goal, the references, the limits, the budget
// (even to a smaller one), the parallelism, the pool and how trials are run can change.
// So can the space, as far as NewSpace says, and in any way in a study with LearnParameters.
// Each difference names the field, the old and the new value. Both studies come from
// Parse.
func Compatible(old, new *Study) (differences []string) {
	d := &differ{}
	d.earlier(&old.Spec, &new.Spec)
	d.compare("metadata.name", old.Metadata.Name, new.Metadata.Name)
	a, b := &old.Spec, &new.Spec
	d.objectives(a, b)
	d.compare("spec.cost", a.Cost, b.Cost)
	d.compare("spec.learnParameters", a.LearnParameters, b.LearnParameters)
	if !a.LearnParameters {
		d.parameters(a.Parameters, b.Parameters)
	}
	d.compare("spec.constraints", nonNil(a.Constraints), nonNil(b.Constraints))
	d.initial(points(a.Initial), points(b.Initial))
	d.compare("spec.algorithm.name", a.Algorithm.Name, b.Algorithm.Name)
	d.compare("spec.algorithm.seed", a.Algorithm.Seed, b.Algorithm.Seed)
	d.compare("spec.algorithm.settings", Point(a.Algorithm.Settings), Point(b.Algorithm.Settings))
	d.compare("spec.earlyStopping", a.EarlyStopping, b.EarlyStopping)
	d.compare("spec.trial.command", nonNil(a.Trial.Command), nonNil(b.Trial.Command))
	d.compare("spec.trial.job", a.Trial.Job, b.Trial.Job)
	d.compare("spec.trial.metrics", a.Trial.Metrics, b.Trial.Metrics)
	return d.list
}

// NewSpace reports whether a compatible change makes another space of the study: other
// ranges (min and max) of floats and ints, other values of categoricals and ordinals, other
// priors, or fewer initial points. Values that stay keep their order.
func NewSpace(old, new *Study) bool {
	space := func(s *Study) []byte {
		return append(compact(s.Spec.Parameters), compact(points(s.Spec.Initial))...)
	}
	return !bytes.Equal(space(old), space(new))
}

// differ collects differences.
type differ struct{ list []string }

// earlier compares what two specs learn from. A study that the new one only names is as it was read.
func (d *differ) earlier(old, new *Spec) {
	const path = "spec.learnFrom"
	recalled := *new
	recalled.Recall(old)
	before, after := earlierNames(old), earlierNames(&recalled)
	switch {
	case !slices.Equal(before, after):
		d.compare(path, before, after)
	case !bytes.Equal(compact(old.LearnFrom), compact(recalled.LearnFrom)):
		d.list = append(d.list, path+" has other trials than when the study was created")
	}
}

func earlierNames(s *Spec) []string {
	names := []string{}
	for i := range s.LearnFrom {
		names = append(names, s.LearnFrom[i].Study)
	}
	return names
}

// compare compares two values of a field as JSON.
func (d *differ) compare(path string, old, new any) {
	before, after := compact(old), compact(new)
	if !bytes.Equal(before, after) {
		d.list = append(d.list, fmt.Sprintf("%s was %s and is %s", path, before, after))
	}
}

// objectives compares the metric, the direction, take and early of each objective.
func (d *differ) objectives(a, b *Spec) {
	if len(a.Several) != len(b.Several) {
		d.compare("spec.objectives", MetricNames(a.Objectives()), MetricNames(b.Objectives()))
		return
	}
	new := b.Objectives()
	for i, o := range a.Objectives() {
		path := "spec.objective"
		if len(a.Several) > 0 {
			path = fmt.Sprintf("spec.objectives[%d]", i)
		}
		d.compare(path+".metric", o.Metric, new[i].Metric)
		d.compare(path+".direction", o.Direction, new[i].Direction)
		d.compare(path+".take", o.Take, new[i].Take)
		d.compare(path+".early", o.Early, new[i].Early)
	}
}

// parameters compares two lists of parameters by name.
func (d *differ) parameters(old, new []Parameter) {
	before := len(d.list)
	for _, p := range old {
		i := slices.IndexFunc(new, func(q Parameter) bool { return q.Name == p.Name })
		if i < 0 {
			d.list = append(d.list, fmt.Sprintf("spec.parameters: %s was %s and is gone", p.Name, compact(p)))
			continue
		}
		q, path := new[i], "spec.parameters."+p.Name
		d.compare(path+".type", p.Type, q.Type)
		d.compare(path+".step", p.Step, q.Step)
		if p.Type == Fidelity { // its levels are what the trials have
			d.compare(path+".min", p.Min, q.Min)
			d.compare(path+".max", p.Max, q.Max)
			d.compare(path+".reduction", p.Reduction, q.Reduction)
		}
		d.compare(path+".scale", p.Scale, q.Scale)
		if !slices.EqualFunc(shared(p.Values, q.Values), shared(q.Values, p.Values), Equal) {
			d.compare("the order of "+path+".values", exactList(p.Values), exactList(q.Values))
		}
		d.compare(path+".value", exact(p.Value), exact(q.Value))
		d.compare(path+".when", conditions(p), conditions(q))
	}
	for _, q := range new {
		if !slices.ContainsFunc(old, func(p Parameter) bool { return p.Name == q.Name }) {
			d.list = append(d.list, fmt.Sprintf("spec.parameters: %s is new: %s", q.Name, compact(q)))
		}
	}
	if len(d.list) == before {
		d.compare("the order of spec.parameters", Names(old), Names(new))
	}
}

// shared returns the values that another list has too.
func shared(values, other []any) []any {
	return slices.DeleteFunc(slices.Clone(values), func(v any) bool { return !Contains(other, v) })
}

// initial compares two lists of initial points, of which some may be left out.
func (d *differ) initial(old, new []Point) {
	rest := old
	for _, p := range new {
		i := slices.IndexFunc(rest, func(q Point) bool { return bytes.Equal(compact(p), compact(q)) })
		if i < 0 {
			d.compare("spec.initial", old, new)
			return
		}
		rest = rest[i+1:]
	}
}

// conditions returns a parameter's When, with the types of its values.
func conditions(p Parameter) map[string][]any {
	if len(p.When) == 0 {
		return nil
	}
	when := make(map[string][]any, len(p.When))
	for name, values := range p.When {
		when[name] = exactList(values)
	}
	return when
}

// Names returns the names of parameters.
func Names(params []Parameter) []string {
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.Name
	}
	return names
}

// points returns the initial points in a form that keeps the types of their values in
// JSON.
func points(initial []map[string]any) []Point {
	points := make([]Point, len(initial))
	for i, p := range initial {
		points[i] = p
	}
	return points
}

// nonNil makes a nil list an empty one.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// compact encodes a value as JSON, which is possible for each value of a parsed study.
func compact(v any) []byte {
	text, err := marshal(v)
	if err != nil {
		return fmt.Appendf(nil, "%v", v)
	}
	return text
}
