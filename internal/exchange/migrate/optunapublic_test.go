package migrate

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

// parallel.log, repeated.log and studies.log have the shapes of journals in public repositories:
// testdata/make_shapes.py says which.
func TestOptunaPublicShapes(t *testing.T) {
	for _, tt := range []struct {
		file, study string
		direction   study.Direction
		parameters  []string
		trials      []Evaluated
		skipped     []Skipped
	}{
		{"parallel.log", "", study.Maximize, []string{"eta float", "lambda int"}, []Evaluated{
			{Place: "trial 0", Point: study.Point{"eta": 0.01, "lambda": int64(3)}, Values: study.Values{0.5}},
			{Place: "trial 1", Point: study.Point{"eta": 0.2, "lambda": int64(8)}, Values: study.Values{0.75}},
		}, []Skipped{
			{"trial 2", "its state is PRUNED: only completed trials have a value"},
			{"trial 3", "its state is RUNNING: only completed trials have a value"},
		}},
		{"repeated.log", "network", study.Maximize, []string{"rate float", "units int", "solver categorical"}, []Evaluated{
			{Place: "trial 0", Point: study.Point{"rate": 0.004, "units": int64(96), "solver": "sgd"}, Values: study.Values{0.5}},
			{Place: "trial 1", Point: study.Point{"rate": 0.004, "units": int64(96), "solver": "sgd"}, Values: study.Values{0.625}},
		}, []Skipped{{"trial 2", "its state is RUNNING: only completed trials have a value"}}},
		{"studies.log", "schedule_1", study.Minimize, []string{"batch categorical", "rate float", "greedy categorical"}, []Evaluated{
			{Place: "trial 0", Point: study.Point{"batch": int64(16), "rate": 0.01, "greedy": false}, Values: study.Values{1},
				Metrics: map[string]float64{"user_attrs_gap": 0.375, "user_attrs_seconds": 25.5}},
			{Place: "trial 1", Point: study.Point{"batch": int64(64), "rate": 0.02, "greedy": true}, Values: study.Values{0.75},
				Metrics: map[string]float64{"user_attrs_gap": 0.5, "user_attrs_seconds": 25.5}},
		}, nil},
	} {
		path := filepath.Join("testdata", tt.file)
		s, notes := optunaStudyOf(t, path, tt.study, 1)
		var parameters []string
		for _, p := range s.Spec.Parameters {
			parameters = append(parameters, p.Name+" "+string(p.Type))
		}
		if diff := cmp.Diff(tt.parameters, parameters); diff != "" || s.Spec.Objective.Direction != tt.direction {
			t.Errorf("%s: %s, parameters (-want +got):\n%s%s", tt.file, s.Spec.Objective.Direction, diff, notes)
		}
		trials, skipped, err := OptunaTrials(t.Context(), path, OptunaOptions{Study: tt.study}, &s.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.trials, trials); diff != "" {
			t.Errorf("%s: trials (-want +got):\n%s", tt.file, diff)
		}
		if diff := cmp.Diff(tt.skipped, skipped); diff != "" {
			t.Errorf("%s: left out (-want +got):\n%s", tt.file, diff)
		}
	}
}
