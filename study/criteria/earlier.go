package criteria

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// LearnFrom checks the earlier studies that a study learns from.
func LearnFrom(spec *study.Spec, found *check.Problems) {
	const path = "spec.learnFrom"
	if len(spec.LearnFrom) == 0 {
		return
	}
	found.AddIf(len(spec.Several) > 0, path, "is for a single objective: leave it out, or write one objective")
	found.AddIf(len(spec.Limits) > 0, path, "cannot be combined with limits: leave one of them out")
	found.AddIf(len(spec.LearnFrom) > study.MaxEarlier, path, "has %d: list at most %d", len(spec.LearnFrom), study.MaxEarlier)
	trials := 0
	names := map[string]bool{}
	for i := range spec.LearnFrom {
		e, at := &spec.LearnFrom[i], fmt.Sprintf("%s[%d]", path, i)
		trials += len(e.Trials)
		twice := names[e.Study]
		names[e.Study] = true
		switch {
		case e.Study == "":
			found.Add(at+".study", "is missing: name an earlier study")
		case twice:
			found.Add(at+".study", "%q is listed twice: name each study once", e.Study)
		}
		found.AddIf(e.Direction != "" && e.Direction != study.Minimize && e.Direction != study.Maximize, at+".direction",
			"%q is not a direction: minimize or maximize", e.Direction)
		for k := range e.Trials {
			t := &e.Trials[k]
			trial := fmt.Sprintf("%s.trials[%d]", at, k)
			found.AddIf(len(t.Parameters) == 0, trial+".parameters", "is missing: write the values of the trial's parameters")
			checkFinite(found, trial+".value", &t.Value)
			checkEffort(found, trial+".seconds", t.Seconds)
			checkEffort(found, trial+".cost", t.Cost)
		}
	}
	found.AddIf(trials > study.MaxEarlierTrials, path, "has %d trials: keep at most %d of all earlier studies together, such as the best ones",
		trials, study.MaxEarlierTrials)
}

// checkEffort checks how long a trial took, or what it has cost.
func checkEffort(found *check.Problems, path string, v float64) {
	checkFinite(found, path, &v)
	found.AddIf(v < 0, path, "%v is negative: write a number from 0 on, or leave it out", v)
}
