package optimizer

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

// What is known early of evaluations that did not complete counts in the problem of its objective or
// limit, and in no other.
func TestKnownEarly(t *testing.T) {
	nan := math.NaN()
	p := &Problem{
		Objectives: []study.Objective{{Direction: study.Maximize}, {Direction: study.Minimize, Early: true}},
		Limits:     []study.Limit{{Metric: "memory"}, {Metric: "size", Early: true}},
		Observations: []Observation{
			{Trial: 1, Outcome: OutcomeCompleted, Values: study.Values{1, 10}, Excess: []float64{nan, -1}},
			{Trial: 2, Outcome: OutcomePruned, Values: study.Values{2, 20}, Excess: []float64{nan, -2}, Early: study.Values{nan, 20}},
			{Trial: 3, Outcome: OutcomePruned, Values: study.Values{3, 30}},
			{Trial: 4, Outcome: OutcomeFailed, Excess: []float64{nan, 4}, Early: study.Values{nan, 40}},
			{Trial: 5, Outcome: OutcomeFailed},
		},
	}
	type told struct {
		Trial   int
		Outcome Outcome
		Value   float64 // 0 for none
	}
	none := told{5, OutcomeFailed, 0}
	for _, c := range []struct {
		name    string
		problem *Problem
		want    []told
	}{
		{"the first objective", p.Known(0), []told{{1, OutcomeCompleted, 1}, {4, OutcomeFailed, 0}, none}},
		{"the second", p.Known(1), []told{{1, OutcomeCompleted, 10}, {2, OutcomeCompleted, 20}, {4, OutcomeCompleted, 40}, none}},
		{"the second alone", p.Alone(1), []told{{1, OutcomeCompleted, 10}, {4, OutcomeFailed, 0}, none}},
		{"the first limit", p.Bounded(0), []told{{1, OutcomeCompleted, 1}, {4, OutcomeFailed, 0}, none}},
		{"the second limit", p.Bounded(1), []told{{1, OutcomeCompleted, -1}, {2, OutcomeCompleted, -2}, {4, OutcomeCompleted, 4}, none}},
		{"a mixture", p.Scalar(func(i int) float64 { return float64(7 + i) }),
			[]told{{1, OutcomeCompleted, 7}, {2, OutcomePruned, 0}, {4, OutcomeFailed, 0}, none}},
		{"the second limit of a mixture", p.Scalar(func(int) float64 { return 7 }).Bounded(1),
			[]told{{1, OutcomeCompleted, -1}, {2, OutcomeCompleted, -2}, {4, OutcomeCompleted, 4}, none}},
	} {
		var got []told
		for _, o := range c.problem.Observations {
			value := 0.0
			if len(o.Values) > 0 {
				value = o.Values[0]
			}
			got = append(got, told{o.Trial, o.Outcome, value})
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if v := p.Violations(); v[0] != 1 || !math.IsInf(v[1], 1) || !math.IsInf(v[3], 1) {
		t.Errorf("the violations are %v", v) // one of unknown memory, and those of evaluations that did not complete
	}
}
