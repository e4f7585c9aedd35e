package view

import (
	"strings"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/study"
)

// Limited is what decides whether a study's trials are within its limits: its objectives and
// its limits.
func Limited(s *fantasiav1.Study) *study.Spec {
	spec := &study.Spec{Objective: objective(s.GetObjective())}
	for _, o := range s.GetObjectives() {
		spec.Several = append(spec.Several, objective(o))
	}
	for _, l := range s.GetLimits() {
		spec.Limits = append(spec.Limits, study.Limit{Metric: l.GetMetric(), Max: l.Max, Min: l.Min, Early: l.GetEarly()})
	}
	return spec
}

func objective(o *fantasiav1.Objective) study.Objective {
	return study.Objective{Metric: o.GetMetric(), Direction: study.Direction(strings.ToLower(EnumName(o.GetDirection())))}
}

// Mark sets which of a study's limits the trial is outside of, if it has completed.
func (t *Trial) Mark(spec *study.Spec) {
	t.Exceeded = nil
	if t.State != study.TrialCompleted {
		return
	}
	values := study.Values(t.Values)
	if len(values) == 0 && t.Value != nil {
		values = study.Values{*t.Value}
	}
	for i, e := range spec.Excess(values, t.Metrics) {
		if !(e <= 0) {
			t.Exceeded = append(t.Exceeded, spec.Limits[i].String())
		}
	}
}
