// Package criteria checks what a study judges its trials by: its objectives, their goal, and its limits.
// Study files and the Go package use the same checks.
package criteria

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// Algorithms names the algorithms that take several objectives, those that take limits, those that learn
// from earlier studies, and those that forecast what more trials gain. A nil list accepts every algorithm.
type Algorithms struct{ Several, Limits, Earlier, Forecast []string }

// Check returns the problems with the objectives, the goal and the limits of a study that is not
// from a file, as a *study.Problems; nil if there are none. Paths begin with "spec.".
func Check(spec study.Spec, a Algorithms) error {
	found := check.NewProblems()
	Complete(&spec, found)
	a.Check(&spec, found)
	Limits(&spec, found)
	Cost(&spec, found)
	StopWhen(&spec, found)
	LearnFrom(&spec, found)
	return found.Err("")
}

// Check checks that the algorithm, which is a known one, takes the objectives and the limits.
func (a Algorithms) Check(spec *study.Spec, found *check.Problems) {
	const path = "spec.algorithm.name"
	name := spec.Algorithm.Name
	found.AddIf(len(spec.Several) > 0 && a.Several != nil && !slices.Contains(a.Several, name), path,
		"%s takes one objective: for several use %s", name, strings.Join(a.Several, ", "))
	found.AddIf(len(spec.Limits) > 0 && a.Limits != nil && !slices.Contains(a.Limits, name), path,
		"%s takes no limits: use %s", name, strings.Join(a.Limits, ", "))
	found.AddIf(len(spec.LearnFrom) > 0 && a.Earlier != nil && !slices.Contains(a.Earlier, name), path,
		"%s does not learn from earlier studies: use %s, or leave spec.learnFrom out", name, strings.Join(a.Earlier, ", "))
	found.AddIf(spec.Budget.StopWhen.Gain > 0 && a.Forecast != nil && !slices.Contains(a.Forecast, name), path,
		"%s cannot tell what more trials would gain: use %s, or leave spec.budget.stopWhen out", name, strings.Join(a.Forecast, ", "))
}

// Complete checks the objective or the objectives, and sets what counts as a value.
func Complete(spec *study.Spec, found *check.Problems) {
	const path = "spec.objectives"
	one := found.Places["spec.objective"] != (check.Place{})
	several := len(spec.Several) > 0 || !one && found.Places[path] != (check.Place{})
	switch {
	case !several:
		found.AddIf(spec.Goal != nil, "spec.goal", "is for several objectives: write the goal of a single one as objective.goal")
		completeObjective(&spec.Objective, "spec.objective", found)
		found.AddIf(spec.Objective.Reference != nil, "spec.objective.reference", "is for one of several objectives: leave it out")
		found.AddIf(spec.Objective.Early, "spec.objective.early", "is for one of several objectives: leave it out")
		return
	case one:
		found.Add("spec.objective", "cannot be combined with objectives: write all of them as objectives")
	case len(spec.Several) < 2 || len(spec.Several) > study.MaxObjectives:
		found.Add(path, "has %d: list 2 to %d, or write a single one as objective", len(spec.Several), study.MaxObjectives)
	}
	best := ""
	for i := range spec.Several {
		o, at := &spec.Several[i], fmt.Sprintf("%s[%d]", path, i)
		completeObjective(o, at, found)
		for k := range i {
			found.AddIf(o.Metric != "" && o.Metric == spec.Several[k].Metric, at+".metric",
				"%q is the metric of objectives[%d] already: each objective has its own", o.Metric, k)
		}
		found.AddIf(o.Goal != nil, at+".goal", "is for a single objective: leave it out, or end the study by its hypervolume with spec.goal")
		checkFinite(found, at+".reference", o.Reference)
		checkEarly(found, at, spec, o.Early, o.Metric)
		if o.Take != study.TakeBest {
			continue
		}
		found.AddIf(best != "", at+".take", "best is written for %q already: one report counts for all objectives, the best in one of them", best)
		best = o.Metric
	}
	checkFrontGoal(spec, found)
	for i, p := range spec.Parameters {
		found.AddIf(p.Type == study.Fidelity, fmt.Sprintf("spec.parameters[%d].type", i),
			"fidelity needs a single objective, by which the best trials are promoted")
	}
}

// checkFrontGoal checks the goal of several objectives.
func checkFrontGoal(spec *study.Spec, found *check.Problems) {
	const path = "spec.goal"
	if spec.Goal == nil {
		return
	}
	v := spec.Goal.Hypervolume
	found.AddIf(!(v > 0) || math.IsInf(v, 0), path+".hypervolume", "%v is not accepted; want a finite number above 0", v)
	found.AddIf(len(spec.Several) > study.MaxVolume, path,
		"is for at most %d objectives, and the study has %d: leave it out", study.MaxVolume, len(spec.Several))
	var without []string
	for i := range spec.Several {
		if spec.Several[i].Reference == nil {
			without = append(without, fmt.Sprintf("objectives[%d]", i))
		}
	}
	found.AddIf(len(without) > 0, path,
		"needs a reference of each objective, from which the hypervolume is measured: %s without one", strings.Join(without, ", "))
}

// completeObjective checks one objective.
func completeObjective(o *study.Objective, path string, found *check.Problems) {
	checkMetric(found, path+".metric", o.Metric, "name the metric that the program reports")
	switch o.Direction {
	case study.Minimize, study.Maximize:
	case "":
		found.Add(path+".direction", "is missing: minimize or maximize")
	default:
		found.Add(path+".direction", "%q is not a direction%s: minimize or maximize", o.Direction,
			check.DidYouMean(string(o.Direction), []string{"minimize", "maximize"}))
	}
	switch o.Take {
	case study.TakeLast, study.TakeBest:
	case "":
		o.Take = study.DefaultTake
	default:
		found.Add(path+".take", "%q is not accepted; want last or best", o.Take)
	}
	checkFinite(found, path+".goal", o.Goal)
}

// Metric checks the name of a metric.
func Metric(found *check.Problems, path, name string) {
	wrong := func(c rune) bool { return c <= ' ' || c == 0x7f }
	found.AddIf(len(name) > space.MaxName || strings.ContainsFunc(name, wrong), path, "%q: a metric's name has no spaces and at most %d bytes",
		name, space.MaxName)
}

// checkMetric checks the name of a metric that must not be missing.
func checkMetric(found *check.Problems, path, name, missing string) {
	found.AddIf(name == "", path, "is missing: %s", missing)
	Metric(found, path, name)
}

// checkFinite checks a number that may be left out.
func checkFinite(found *check.Problems, path string, v *float64) {
	if v != nil && !study.Finite(*v) {
		found.Add(path, "%v is not finite: write a finite number", *v)
	}
}
