package study_test

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

func TestExcess(t *testing.T) {
	spec := &study.Spec{
		Objective: study.Objective{Metric: "error"},
		Limits:    []study.Limit{{Metric: "memory", Max: new(512.0)}, {Metric: "recall", Min: new(0.5)}, {Metric: "error", Max: new(1.0)}},
	}
	for _, c := range []struct {
		name    string
		value   float64
		metrics map[string]float64
		want    []float64
		within  bool
	}{
		{"at the bounds", 1, map[string]float64{"memory": 512, "recall": 0.5}, []float64{0, 0, 0}, true},
		{"inside", 0.5, map[string]float64{"memory": 500, "recall": 0.75}, []float64{-12, -0.25, -0.5}, true},
		{"outside of one", 0.5, map[string]float64{"memory": 513, "recall": 0.75}, []float64{1, -0.25, -0.5}, false},
		{"below the least", 0.5, map[string]float64{"memory": 500, "recall": 0.25}, []float64{-12, 0.25, -0.5}, false},
		{"an objective's metric is its value", 2, map[string]float64{"memory": 500, "recall": 1, "error": 0}, []float64{-12, -0.5, 1}, false},
		{"a missing metric", 0.5, map[string]float64{"memory": 500}, []float64{-12, math.NaN(), -0.5}, false},
		{"infinite", 0.5, map[string]float64{"memory": math.Inf(-1), "recall": 1}, []float64{math.NaN(), -0.5, -0.5}, false},
		{"overflow", 0.5, map[string]float64{"memory": -math.MaxFloat64, "recall": -math.MaxFloat64},
			[]float64{-math.MaxFloat64, math.MaxFloat64, -0.5}, false},
	} {
		got := spec.Excess(study.Values{c.value}, c.metrics)
		for i := range c.want {
			if got[i] != c.want[i] && !(math.IsNaN(got[i]) && math.IsNaN(c.want[i])) {
				t.Errorf("%s: limit %d is exceeded by %v, want %v", c.name, i, got[i], c.want[i])
			}
		}
		if within := spec.Within(study.Values{c.value}, c.metrics); within != c.within {
			t.Errorf("%s: within is %v, want %v", c.name, within, c.within)
		}
	}
	if spec.Limits = nil; spec.Excess(study.Values{1}, nil) != nil || !spec.Within(study.Values{1}, nil) {
		t.Error("without limits a trial is not within them")
	}
}
