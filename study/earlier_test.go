package study_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

// Of 20 trials with the costs 19 … 0, eight are kept: the four best, the two that came last and are not among
// them, and two spread over the rest.
func TestRepresentative(t *testing.T) {
	costs := []float64{4, 3, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 2, 1, 0}
	got := study.Representative(costs, 8, func(v float64) float64 { return v })
	// The best are 3 (second), 2, 1 and 0; the latest others are 6 and 5; of the 14 others the first and the eighth.
	if want := []float64{4, 3, 13, 6, 5, 2, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	for n := range 30 {
		if got := study.Representative(costs, n, func(v float64) float64 { return v }); len(got) != min(n, len(costs)) {
			t.Errorf("%d of 20: %d kept", n, len(got))
		}
	}
}

func TestRecall(t *testing.T) {
	read := study.Earlier{Study: "march", Direction: study.Maximize, Trials: []study.EarlierTrial{{Value: 1}}}
	old := study.Spec{LearnFrom: []study.Earlier{read}}
	given := []study.Earlier{{Study: "february"}, {Study: "march"}}
	changed := study.Spec{LearnFrom: given}
	file := study.Earlier{Study: "may.csv", Trials: read.Trials}
	old.LearnFrom = append(old.LearnFrom, file, study.Earlier{Study: "june", Trials: read.Trials})
	changed.Recall(&old)
	if diff := cmp.Diff([]study.Earlier{{Study: "february"}, read, file}, changed.LearnFrom); diff != "" {
		t.Error(diff)
	}
	if given[1].Trials != nil {
		t.Error("the caller's list was changed")
	}
}

// A parameter with one value is not searched, so nobody lacks it.
func TestLackingParameters(t *testing.T) {
	zero, one := 0.0, 1.0
	parameters := []study.Parameter{
		{Name: "x", Type: study.Float, Min: &zero, Max: &one}, {Name: "rate", Type: study.Float, Min: &zero, Max: &one},
		{Name: "f", Type: study.Fixed, Value: "a"},
	}
	e := study.Earlier{Trials: []study.EarlierTrial{
		{Parameters: map[string]any{"learning_rate": 0.1}}, {Parameters: map[string]any{"x": 0.1}},
	}}
	if got := e.Lacking(parameters); !slices.Equal(got, []string{"rate"}) {
		t.Errorf("%v, want rate", got)
	}
}

// A trial counts if it has a parameter that is searched, and no value without a place; four are needed.
func TestUselessEarlierStudies(t *testing.T) {
	zero, one := 0.0, 1.0
	parameters := []study.Parameter{
		{Name: "x", Type: study.Float, Min: &zero, Max: &one}, {Name: "k", Type: study.Categorical, Values: []any{"a", "b"}},
		{Name: "f", Type: study.Fixed, Value: "a"},
	}
	for _, tt := range []struct {
		trials []map[string]any
		says   string
	}{
		{[]map[string]any{{"x": 0.1}, {"x": 7.0}, {"k": "a"}, {"k": "b", "y": 1}}, ""},
		{[]map[string]any{{"x": 0.1}, {"x": 0.2}, {"x": 0.3}}, "from 3 of its trials. At least 4 are needed"},
		{[]map[string]any{{"y": 0.1}, {"y": 0.2}, {"f": "a"}, {"y": 0.4}}, "none of the parameters that this study searches (x, k)"},
		{
			[]map[string]any{{"x": 0.1, "k": "c"}, {"x": 0.2, "k": "c"}, {"x": 0.3, "k": "a"}, {"x": 0.4, "k": "d"}},
			"from 1 of its trials; others have, for example, c as k: want a, b.",
		},
	} {
		e := study.Earlier{Study: "march"}
		for _, p := range tt.trials {
			e.Trials = append(e.Trials, study.EarlierTrial{Parameters: p})
		}
		if why := e.Useless(parameters); !strings.Contains(why, tt.says) || (why == "") != (tt.says == "") {
			t.Errorf("%v: %q, want %q", tt.trials, why, tt.says)
		}
		spec := study.Spec{Parameters: parameters, LearnFrom: []study.Earlier{e, {Study: "not read yet"}}}
		if err := spec.CheckEarlier(); (err == nil) != (tt.says == "") {
			t.Errorf("%v: %v", tt.trials, err)
		}
		if spec.LearnParameters = true; spec.CheckEarlier() != nil {
			t.Errorf("%v: a study whose parameters are still to be learnt is refused", tt.trials)
		}
	}
}
