package messaging

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

// sizedStudy is a study with a command, a variable and a choice of given lengths.
func sizedStudy(command, env, choice int) *study.Study {
	lo, hi := 0.0, 1.0
	return &study.Study{Metadata: study.Metadata{Name: "s"}, Spec: study.Spec{
		Objective: study.Objective{Metric: "loss", Direction: study.Minimize},
		Parameters: []study.Parameter{
			{Name: "x", Type: study.Float, Min: &lo, Max: &hi},
			{Name: "c", Type: study.Categorical, Values: []any{"short", strings.Repeat("v", choice), int64(3)}},
		},
		Pool: study.DefaultPool,
		Trial: study.TrialTemplate{
			Command: []string{strings.Repeat("a", command)}, Env: map[string]string{"V": strings.Repeat("e", env)},
		},
	}}
}

func TestCheckSizeNamesWhatIsTooLarge(t *testing.T) {
	for _, test := range []struct {
		command, env, choice int
		path                 string
	}{
		{1000, 1000, 1000, ""},
		{200_000, 1000, 1000, ""},
		{300_000, 1000, 1000, "spec.trial.command"},
		{1000, 300_000, 1000, "spec.trial.env"},
		{1000, 1000, 300_000, "spec.parameters"},
	} {
		err := CheckSize(sizedStudy(test.command, test.env, test.choice))
		var problems *study.Problems
		switch {
		case test.path == "" && err != nil:
			t.Errorf("%+v: %v, want no error", test, err)
		case test.path != "" && (!errors.As(err, &problems) || problems.List[0].Path != test.path || !strings.Contains(err.Error(), "258048")):
			t.Errorf("%+v: %v, want one at %s that names the bound of 258048 bytes", test, err, test.path)
		}
	}
}

// Whatever passes the check can be encoded, at the very bound too.
func TestWhatPassesTheCheckCanBeSent(t *testing.T) {
	lo, hi := 0, 300_000
	for hi-lo > 1 {
		if n := (lo + hi) / 2; CheckSize(sizedStudy(n, 10, 10)) == nil {
			lo = n
		} else {
			hi = n
		}
	}
	s := sizedStudy(lo, 10, 10)
	a := &Assignment{
		AttemptID: AttemptID{Study: strings.Repeat("s", MaxToken), Trial: 999_999, Attempt: 9999, Nonce: strings.Repeat("n", MaxToken)},
		Pool:      s.Spec.Pool, StudyName: s.Metadata.Name, Seed: math.MaxUint64, Objective: s.Spec.Objective, Run: s.Spec.Trial,
		Parameters: study.Point{"x": 0.12345678901234567, "c": "vvvvvvvvvv"}, ParameterOrder: []string{"x", "c"},
		Checkpoint: strings.Repeat("<", MaxReference), Reached: &Reached{Attempt: 9999, Best: map[string]Number{}, Last: map[string]Number{},
			Steps: map[string]int64{s.Spec.Objective.Metric: math.MinInt64}},
	}
	longest := Number(-0x1p-1022)
	a.Reached.Best[s.Spec.Objective.Metric], a.Reached.Last[s.Spec.Objective.Metric] = longest, longest
	data, err := Encode(a)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) < MaxEnvelope-100 {
		t.Errorf("the largest study makes a message of %d bytes, want nearly %d", len(data), MaxEnvelope)
	}
}
