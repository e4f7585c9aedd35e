package local_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

// continuedStudy has one trial, whose program is a script that is interrupted in its first attempt.
const continuedStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: continued}
spec:
  OBJECTIVE
  parameters: [{name: x, type: float, min: 0, max: 1}]
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: 1}
  trial:
    command: [sh, -c, 'report() { echo "{\"fantasia\": {\"metrics\": {$1}}}"; }; SCRIPT']
    timeout: 2s
    grace: 100ms
    retries: {failed: 1, timeout: 1}
`

// However a trial was interrupted, its value comes from the reports of all attempts that continue one
// another. An attempt that begins anew counts only its own reports.
func TestATrialIsAllOfItsAttempts(t *testing.T) {
	const (
		first   = `report "\"loss\": 0.9"; report "\"loss\": 0.5"; report "\"loss\": 0.1"; report "\"loss\": 0.3"; `
		saved   = `if [ ! -e "$FANTASIA_CHECKPOINT_DIR/s" ]; then ` + first + `touch "$FANTASIA_CHECKPOINT_DIR/s"; `
		named   = `if [ -z "$FANTASIA_CHECKPOINT" ]; then ` + first + `echo "{\"fantasia\": {\"checkpoint\": \"s3://c\"}}"; `
		neither = `if [ "$FANTASIA_ATTEMPT" = 1 ]; then ` + first
		rest    = `; fi; report "\"loss\": 0.4"; report "\"loss\": 0.6"`
		nothing = `; fi`
		oneBest = `objective: {metric: loss, direction: minimize, take: best}`
		oneLast = `objective: {metric: loss, direction: minimize}`
		two     = `objectives: [{metric: loss, direction: minimize, take: best}, {metric: size, direction: minimize}]`
		limited = oneLast + "\n  limits: [{metric: size, max: 100}]"
	)
	for _, c := range []struct {
		name, objective, script string
		want                    study.Values // nil for a trial that has failed
	}{
		{"the best, exit code 75", oneBest, saved + `exit 75` + rest, study.Values{0.1}},
		{"the best, an error", oneBest, saved + `exit 1` + rest, study.Values{0.1}},
		{"the best, killed", oneBest, named + `kill -9 $$` + rest, study.Values{0.1}},
		{"the best, timed out", oneBest, saved + `sleep 60` + rest, study.Values{0.1}},
		{"the last", oneLast, named + `exit 75` + rest, study.Values{0.6}},
		{"the best, begun anew", oneBest, neither + `exit 75` + rest, study.Values{0.4}},
		{"nothing is left to report", oneLast, saved + `exit 75` + nothing, study.Values{0.3}},
		{"nothing is left to report of the best", oneBest, named + `kill -9 $$` + nothing, study.Values{0.1}},
		{"nothing is reported, begun anew", oneLast, neither + `exit 75` + nothing, nil},
		{"a second objective", two, `report "\"size\": 7"; ` + saved + `exit 75` + rest, study.Values{0.1, 7}},
		{"a second objective once", two, strings.Replace(saved, "then ", `then report "\"size\": 7"; `, 1) + `exit 75` + rest, study.Values{0.1, 7}},
		{"a limit's metric once", limited, strings.Replace(saved, "then ", `then report "\"size\": 7"; `, 1) + `exit 75` + rest, study.Values{0.6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := strings.NewReplacer("OBJECTIVE", c.objective, "SCRIPT", c.script).Replace(continuedStudy)
			trial := run(t, stateDir(t), parse(t, "%s", text)).Trials[0]
			if diff := cmp.Diff(c.want, trial.Values); diff != "" || c.want != nil && len(trial.Attempts) != 2 {
				t.Errorf("%d attempts, the last %+v, values (-want +got):\n%s", len(trial.Attempts), trial.Last().Failure, diff)
			}
		})
	}
}
