package record_test

import (
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// Only completed trials are on the front and, once the space was edited, only those inside.
func TestFront(t *testing.T) {
	s := record.Study{Definition: study.Study{Spec: study.Spec{
		Several:    []study.Objective{{Metric: "error", Direction: study.Minimize}, {Metric: "speed", Direction: study.Maximize}},
		Parameters: []study.Parameter{{Name: "x", Type: study.Float, Min: new(0.0), Max: new(1.0)}},
	}}}
	trial := func(n int, state study.TrialState, x float64, values ...float64) record.Trial {
		return record.Trial{Number: n, State: state, Point: study.Point{"x": x}, Values: values}
	}
	trials := []record.Trial{
		trial(1, study.TrialCompleted, 0.1, 1, 1),
		trial(2, study.TrialCompleted, 2, 0, 9), // outside
		trial(3, study.TrialPruned, 0.3, 0, 9),
		trial(4, study.TrialCompleted, 0.4, 2, 2),
		trial(5, study.TrialCompleted, 0.5, 2, 1), // dominated by 1 and 4
		trial(6, study.TrialFailed, 0.6),
	}
	for version, want := range map[int][]int{0: {2}, 2: {1, 4}} {
		s.Space = version
		front, err := s.Front(trials)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, t := range front {
			got = append(got, t.Number)
		}
		if !slices.Equal(got, want) {
			t.Errorf("version %d of the space: the front is %v, want %v", version, got, want)
		}
	}
}
