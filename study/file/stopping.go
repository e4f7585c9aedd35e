package file

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/criteria"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// ruleBesideFidelity is the rule that compares no trials, so that a fidelity does not matter.
const ruleBesideFidelity = "threshold"

// completeEarlyStopping checks how trials are stopped early, and sets the metric.
func completeEarlyStopping(spec *study.Spec, found *check.Problems, o *options) {
	const path = "spec.earlyStopping"
	e := spec.EarlyStopping
	if e == nil {
		return
	}
	names := study.MetricNames(spec.Objectives())
	switch {
	case e.Metric != "":
		criteria.Metric(found, path+".metric", e.Metric)
		found.AddIf(len(names) > 1 && !slices.Contains(names, e.Metric), path+".metric",
			"%q is not the metric of an objective, whose direction the rule needs%s: %s", e.Metric, check.DidYouMean(e.Metric, names),
			strings.Join(names, ", "))
	case len(names) > 1:
		found.Add(path+".metric", "is missing: of several objectives, name the one that the rule compares: %s", strings.Join(names, ", "))
	default:
		e.Metric = names[0]
	}
	if m := spec.Trial.Metrics; m != nil && m.File != "" {
		found.Add(path, "needs reports while a program runs, but spec.trial.metrics.file is read when it has ended: use a pattern, or reports")
	} else if m != nil && m.Pattern != "" {
		if group := study.GroupName(e.Metric); group != e.Metric && !slices.Contains(names, e.Metric) {
			found.Add(path+".metric", "%q cannot name a group of spec.trial.metrics.pattern: write %s in both places", e.Metric, group)
		} else {
			checkGroup(found, m.Pattern, e.Metric, "the metric of spec.earlyStopping")
		}
	}
	known := slices.Sorted(maps.Keys(o.stoppers))
	e.Name = cmp.Or(e.Name, DefaultRule)
	settings, ok := o.stoppers[e.Name]
	if !ok && o.stoppers != nil {
		found.Add(path+".name", "%q is not a rule for early stopping%s%s", e.Name, check.DidYouMean(e.Name, known), listed(known))
		return
	}
	if i := slices.IndexFunc(spec.Parameters, func(p study.Parameter) bool { return p.Type == study.Fidelity }); i >= 0 &&
		e.Name != ruleBesideFidelity {
		found.Add(path+".name", "%s compares trials of one length, but parameter %s is a fidelity, whose trials differ in theirs: leave "+
			"earlyStopping out, since trials are promoted already, or use %s",
			e.Name, spec.Parameters[i].Name, ruleBesideFidelity)
		return
	}
	if settings != nil {
		reportSettings(found, path, settings(e))
	}
}

// listed returns a list of what would be accepted, if it is known.
func listed(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}
