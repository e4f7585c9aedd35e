package migrate

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fantasia-hpo/fantasia/study"
)

// The Python client reads the same table (clients/python/tests/test_names.py).
func TestConstraintMetric(t *testing.T) {
	var table []struct{ Name, Want string }
	if err := json.Unmarshal([]byte(source(t, "constraints.json")), &table); err != nil {
		t.Fatal(err)
	}
	for _, tt := range table {
		if got := ConstraintMetric(tt.Name); got != tt.Want {
			t.Errorf("%q becomes %q, want %q", tt.Name, got, tt.Want)
		}
	}
}

// testdata/constraints.db and constraints.log were made by Optuna itself: testdata/make_constraints.py
// says what is in them, and what is wanted here follows from that.
func TestOptunaConstraints(t *testing.T) {
	nan, least := math.NaN(), -math.MaxFloat64
	for _, c := range []struct {
		study, size, memory string
		known               [][2]float64
		initial             []float64
	}{
		// Of those outside, trial 5 is nearer than 0, and of 2 and 4 it is not known how near they are.
		{"set", ConstraintMetric("size"), ConstraintMetric("peak memory"),
			[][2]float64{{-1, 3}, {0, -2}, {-1, nan}, {least, -1}, {nan, -1}, {0.5, 0.5}}, []float64{0.2, 0.4, 0.6, 0.1, 0.3, 0.5}},
		{"computed", "constraints_0", "constraints_1", [][2]float64{{1, -1}, {-1, 0.5}, {0, -3}}, []float64{0.3, 0.2, 0.1}},
	} {
		for _, path := range stored("constraints") {
			s, notes := optunaStudyOf(t, path, c.study, 6)
			bounded := map[string]bool{}
			for _, l := range s.Spec.Limits {
				bounded[l.Metric] = l.Max != nil && *l.Max == 0
			}
			if diff := cmp.Diff(map[string]bool{c.size: true, c.memory: true}, bounded); diff != "" {
				t.Errorf("%s, %s: limits (-want +got):\n%s", path, c.study, diff)
			}
			for _, metric := range []string{c.size, c.memory} {
				if _, after, ok := strings.Cut(notes, "and the values of its constraints as "); !ok || !strings.Contains(after, metric) {
					t.Errorf("%s, %s: the notes lack the metric %s:\n%s", path, c.study, metric, notes)
				}
			}
			var initial []float64
			for _, p := range s.Spec.Initial {
				initial = append(initial, p["x"].(float64))
			}
			if diff := cmp.Diff(c.initial, initial); diff != "" {
				t.Errorf("%s, %s: initial points (-want +got):\n%s", path, c.study, diff)
			}
			trials, skipped, err := OptunaTrials(t.Context(), path, OptunaOptions{Python: python, Study: c.study}, &s.Spec)
			if err != nil || len(skipped) > 0 {
				t.Fatalf("%s, %s: left out %v, error %v", path, c.study, skipped, err)
			}
			var known [][2]float64
			for _, one := range trials {
				known = append(known, [2]float64{one.Metrics[c.size], one.Metrics[c.memory]})
			}
			if diff := cmp.Diff(c.known, known, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("%s, %s: constraints (-want +got):\n%s", path, c.study, diff)
			}
		}
	}
}

// A trial whose constraint is no number does not meet it, and a study has no limits by constraints that
// only trials without a value have.
func TestOptunaOddConstraints(t *testing.T) {
	const float = `{"name": "FloatDistribution", "attributes": {"step": null, "low": 0, "high": 1, "log": false}}`
	constrained := func(line, attributes string) string {
		return strings.TrimSuffix(line, "}") + `, "system_attrs": ` + attributes + "}"
	}
	failed := strings.Replace(addedWhole("null", "x", float, "0.5"), `"state": 1`, `"state": 3`, 1)
	path := journalOf(t,
		constrained(addedWhole("1", "x", float, "0.5"), `{"constraints": [1e999, "much"], "fixed_params": {"x": 1}}`),
		constrained(addedWhole("2", "x", float, "0.6"), `{"constraints": null, "constraints:0": -1}`),
		constrained(failed, `{"constraints:of a failed one": 1}`))
	s, _ := optunaStudyOf(t, path, "s", 0)
	want := []study.Limit{{Metric: "constraints_0", Max: new(0.0)}, {Metric: "constraints_1", Max: new(0.0)}}
	if diff := cmp.Diff(want, s.Spec.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	trials, _, err := OptunaTrials(t.Context(), path, OptunaOptions{Study: "s"}, &s.Spec)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]float64{{"constraints_0": math.NaN(), "constraints_1": math.NaN()},
		{"constraints_0": -1, "constraints_1": math.NaN()}} {
		if diff := cmp.Diff(want, trials[i].Metrics, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("trial %d: metrics (-want +got):\n%s", i, diff)
		}
	}
}
