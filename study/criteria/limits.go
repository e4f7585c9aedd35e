package criteria

import (
	"fmt"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// Limits checks the limits on metrics.
func Limits(spec *study.Spec, found *check.Problems) {
	const path = "spec.limits"
	found.AddIf(len(spec.Limits) > study.MaxLimits, path, "has %d: list at most %d", len(spec.Limits), study.MaxLimits)
	for i := range spec.Limits {
		l, at := &spec.Limits[i], fmt.Sprintf("%s[%d]", path, i)
		checkMetric(found, at+".metric", l.Metric, "name the metric that is limited")
		found.AddIf((l.Max == nil) == (l.Min == nil), at, "must have one of max and min; for both, write two limits of the metric")
		checkFinite(found, at+".max", l.Max)
		checkFinite(found, at+".min", l.Min)
		checkEarly(found, at, spec, l.Early, l.Metric)
		for k := range i {
			before := &spec.Limits[k]
			found.AddIf(l.Metric != "" && l.Metric == before.Metric && (l.Max == nil) == (before.Max == nil), at,
				"limits[%d] has the same bound of %q: write one of them", k, l.Metric)
		}
	}
	if len(spec.Limits) == 0 {
		return
	}
	for i, p := range spec.Parameters {
		found.AddIf(p.Type == study.Fidelity, fmt.Sprintf("spec.parameters[%d].type", i),
			"fidelity cannot be combined with limits: trials are promoted by their objective alone")
	}
}

// checkEarly checks that a metric can be known before a trial ends.
func checkEarly(found *check.Problems, at string, spec *study.Spec, early bool, metric string) {
	best := slices.ContainsFunc(spec.Several, func(o study.Objective) bool { return o.Metric == metric && o.Take == study.TakeBest })
	switch at += ".early"; {
	case !early || metric == "":
	case len(spec.Several) == 0 && spec.Objective.Metric == metric:
		found.Add(at, "is for a metric that is known before a trial ends, but %q is the study's only objective: leave early out", metric)
	case spec.EarlyStopping != nil && spec.EarlyStopping.Metric == metric:
		found.Add(at,
			"is for a metric that does not change while a trial runs, but earlyStopping compares reports of %q: leave early out", metric)
	case best:
		found.Add(at, "is for a metric that does not change while a trial runs, but take of %q is best: leave one of them out", metric)
	}
}
