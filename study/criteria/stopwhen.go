package criteria

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// StopWhen checks when more trials are not worth it.
func StopWhen(spec *study.Spec, found *check.Problems) {
	const path = "spec.budget.stopWhen"
	gain, per := spec.Budget.StopWhen.Gain, spec.Budget.StopWhen.Per
	fidelity := func(p study.Parameter) bool { return p.Type == study.Fidelity }
	switch given := gain != 0 || per != "" || found.Places[path] != (check.Place{}); {
	case !given:
	case !slices.Contains([]study.Per{"", study.PerTrials, study.PerHour, study.PerCost}, per):
		found.Add(path+".per", "%q is not accepted; want trials, hour or cost", per)
	case per == study.PerCost && spec.Cost == nil:
		found.Add(path+".per", "cost needs a study whose trials have one: set spec.cost, or per: hour")
	case !(gain > 0) || !study.Finite(gain):
		found.Add(path+".gain", "%v is not accepted; want a finite number above 0, in the unit of the objective", gain)
	case len(spec.Several) > 0:
		found.Add(path, "is for a single objective: with several, end the study by its hypervolume with spec.goal")
	case len(spec.Limits) > 0:
		found.Add(path, "is for a study without limits: what more trials gain within them is not known")
	case slices.ContainsFunc(spec.Parameters, fidelity):
		found.Add(path, "is for a study without a fidelity: what more trials gain at the highest level is not known")
	}
}
