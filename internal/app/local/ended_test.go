package local_test

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

// TestProgramsThatHadOnlyToExitComplete stops programs early by what they report at their third step, and
// lets them wait to be stopped: trial 3 after all of its steps, trial 4 when half of them are left.
func TestProgramsThatHadOnlyToExitComplete(t *testing.T) {
	t.Parallel()
	trials := run(t, stateDir(t), parse(t, "%s", `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: ended}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  algorithm: {name: random, seed: 1}
  earlyStopping: {name: threshold, settings: {upper: 10}}
  budget: {maxTrials: 4}
  parallelism: 1
  trial:
    grace: 1s
    command:
      - sh
      - -c
      - |
        say() { echo "{\"fantasia\": {\"step\": $1, \"metrics\": {\"loss\": $2}}}"; }
        case $FANTASIA_TRIAL in
        1|2) for s in 1 2 3 4 5 6; do say $s 1; done;;
        3) for s in 1 2 3 4 5 6; do say $s 1$s; done; exec sleep 60;;
        4) for s in 1 2 3; do say $s 2$s; done; exec sleep 60;;
        esac
`)).Trials
	want := []struct {
		state study.TrialState
		value float64
	}{{study.TrialCompleted, 1}, {study.TrialCompleted, 1}, {study.TrialCompleted, 16}, {study.TrialPruned, 23}}
	for i, w := range want {
		got := trials[i]
		if got.State != w.state || got.Values.First() != w.value || (i > 1) != (got.Stopped != nil) {
			t.Errorf("trial %d is %s with %v, stopped by %+v, want %s with %g", i+1, got.State, got.Values, got.Stopped, w.state, w.value)
		}
	}
}
