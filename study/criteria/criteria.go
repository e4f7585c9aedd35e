package file

import (
	"fmt"
	"math"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// completeObjectives checks the objective or the objectives, and sets what counts as a value.
func completeObjectives(spec *study.Spec, r *check.Report) {
	const path = "spec.objectives"
	one := r.Places["spec.objective"] != (check.Place{})
	several := len(spec.Several) > 0 || !one && r.Places[path] != (check.Place{})
	switch {
	case !several:
		r.AddIf(spec.Goal != nil, "spec.goal", "is for several objectives: write the goal of a single one as objective.goal")
		completeObjective(&spec.Objective, "spec.objective", r)
		r.AddIf(spec.Objective.Reference != nil, "spec.objective.reference", "is for one of several objectives: leave it out")
		r.AddIf(spec.Objective.Early, "spec.objective.early", "is for one of several objectives: leave it out")
		return
	case one:
		r.Add("spec.objective", "cannot be combined with objectives: write all of them as objectives")
	case len(spec.Several) < 2 || len(spec.Several) > study.MaxObjectives:
		r.Add(path, "has %d: list 2 to %d, or write a single one as objective", len(spec.Several), study.MaxObjectives)
	}
	best := ""
	for i := range spec.Several {
		o, at := &spec.Several[i], fmt.Sprintf("%s[%d]", path, i)
		completeObjective(o, at, r)
		for k := range i {
			r.AddIf(o.Metric != "" && o.Metric == spec.Several[k].Metric, at+".metric", "%q is the metric of objectives[%d] already: each objective has its own", o.Metric, k)
		}
		r.AddIf(o.Goal != nil, at+".goal", "is for a single objective: leave it out, or end the study by its hypervolume with spec.goal")
		checkFinite(r, at+".reference", o.Reference)
		checkEarly(r, at, spec, o.Early, o.Metric)
		if o.Take != study.TakeBest {
			continue
		}
		r.AddIf(best != "", at+".take", "best is written for %q already: one report counts for all objectives, the best in one of them", best)
		best = o.Metric
	}
	checkFrontGoal(spec, r)
	for i, p := range spec.Parameters {
		r.AddIf(p.Type == study.Fidelity, fmt.Sprintf("spec.parameters[%d].type", i), "fidelity needs a single objective, by which the best trials are promoted")
	}
}

// checkFrontGoal checks the goal of several objectives.
func checkFrontGoal(spec *study.Spec, r *check.Report) {
	const path = "spec.goal"
	if spec.Goal == nil {
		return
	}
	v := spec.Goal.Hypervolume
	r.AddIf(!(v > 0) || math.IsInf(v, 0), path+".hypervolume", "%v is not accepted; want a finite number above 0", v)
	r.AddIf(len(spec.Several) > study.MaxVolume, path, "is for at most %d objectives, and the study has %d: leave it out", study.MaxVolume, len(spec.Several))
	var without []string
	for i := range spec.Several {
		if spec.Several[i].Reference == nil {
			without = append(without, fmt.Sprintf("objectives[%d]", i))
		}
	}
	r.AddIf(len(without) > 0, path, "needs a reference of each objective, from which the hypervolume is measured: %s without one", strings.Join(without, ", "))
}

// completeObjective checks one objective.
func completeObjective(o *study.Objective, path string, r *check.Report) {
	if o.Metric == "" {
		r.Add(path+".metric", "is missing: name the metric that the program reports")
	} else {
		checkMetric(r, path+".metric", o.Metric)
	}
	switch o.Direction {
	case study.Minimize, study.Maximize:
	case "":
		r.Add(path+".direction", "is missing: minimize or maximize")
	default:
		r.Add(path+".direction", "%q is not a direction%s: minimize or maximize", o.Direction,
			check.DidYouMean(string(o.Direction), []string{"minimize", "maximize"}))
	}
	switch o.Take {
	case study.TakeLast, study.TakeBest:
	case "":
		o.Take = study.DefaultTake
	default:
		r.Add(path+".take", "%q is not accepted; want last or best", o.Take)
	}
	checkFinite(r, path+".goal", o.Goal)
}

// checkFinite checks a number that may be left out.
func checkFinite(r *check.Report, path string, v *float64) {
	r.AddIf(v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)), path, "%v is not finite: write a finite number", deref(v))
}

// deref returns a number, or 0 for nil.
func deref(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
