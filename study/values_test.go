package study_test

import (
	"math"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

func TestObjectivesOfOneAndOfSeveral(t *testing.T) {
	one, two := study.Objective{Metric: "error"}, study.Objective{Metric: "seconds"}
	single, several := study.Spec{Objective: one}, study.Spec{Several: []study.Objective{two, one}}
	if got := study.MetricNames(single.Objectives()); !slices.Equal(got, []string{"error"}) || single.FirstObjective().Metric != "error" {
		t.Errorf("a single objective is %v, the first %q", got, single.FirstObjective().Metric)
	}
	if got := study.MetricNames(several.Objectives()); !slices.Equal(got, []string{"seconds", "error"}) ||
		several.FirstObjective().Metric != "seconds" {
		t.Errorf("two objectives are %v, the first %q", got, several.FirstObjective().Metric)
	}
	if v := (study.Values{}).First(); !math.IsNaN(v) {
		t.Errorf("the first of no values is %v, want NaN", v)
	}
}
