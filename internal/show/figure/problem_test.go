package figure_test

import (
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
)

// A problem has all values of the dashboard's trials, and by how much they are outside of limits.
func TestProblemOfObjectivesAndLimits(t *testing.T) {
	s := &study.Study{Spec: study.Spec{
		Several:    []study.Objective{{Metric: "error", Direction: study.Minimize}, {Metric: "recall", Direction: study.Maximize}},
		Limits:     []study.Limit{{Metric: "mb", Max: new(512.0)}, {Metric: "recall", Min: new(1.0)}},
		Parameters: []study.Parameter{{Name: "x", Type: study.Float, Min: new(0.0), Max: new(1.0)}},
	}}
	trial := &record.Trial{
		Number: 1, State: study.TrialCompleted, Ended: 1, Point: study.Point{"x": 0.5},
		Values: study.Values{0.25, 0.75}, Metrics: map[string]float64{"mb": 600, "epochs": 3},
	}
	p, _, err := figure.Problem(s, []*figure.Trial{figure.Of(&s.Spec, figure.AxesOf(s), trial)})
	if err != nil {
		t.Fatal(err)
	}
	o := p.Observations[0]
	if len(p.Objectives) != 2 || len(p.Limits) != 2 || !slices.Equal(o.Values, study.Values{0.25, 0.75}) ||
		!slices.Equal(o.Excess, []float64{88, 0.25}) {
		t.Errorf("%d objectives, %d limits and %+v", len(p.Objectives), len(p.Limits), o)
	}
}
