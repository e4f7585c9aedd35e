package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/study"
)

const prunedStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: cluster}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}, {name: y, type: float, min: -1, max: 1}]
  algorithm: {name: random, seed: 1}
  earlyStopping: {name: threshold, settings: {upper: %g, minSteps: %d}}
  budget: {maxTrials: %d}
  parallelism: 8
  trial: {command: [unused], retries: {lost: 10}}
`

// TestPruningSurvivesKills kills leaders and workers while a rule stops trials early. A
// program reports its value at every step, so the rule decides by a trial's point alone:
// exactly the trials above the limit are pruned, each once, with the value that they had
// reached, and the budget is exact.
func TestPruningSurvivesKills(t *testing.T) {
	const trials, steps, first, limit = 40, 160, 3, 0.5
	c := startCluster(t, 3, 4, 2, fmt.Sprint(stepsVariable, "=", steps), levelVariable+"=1")
	c.Create(fmt.Sprintf(prunedStudy, limit, first, trials))
	for i, ended := range []int{4, 8, 13, 17, 21, 25, 29, 33} {
		if _, over := c.Await("cluster", ended); over {
			t.Fatalf("the study ended before fault %d", i)
		}
		if i%2 == 0 {
			c.KillLeader()
		} else {
			w := c.workers[i%len(c.workers)]
			w.Kill()
			w.Restart()
		}
	}
	s, _ := c.Await("cluster", trials)
	if s.Status.State != study.Completed || s.Status.Counts.Ended() != trials || s.Status.Position != 2*trials {
		t.Errorf("the study is %s (%s) at %d with %+v, want %d ended trials, each told once",
			s.Status.State, s.Status.Reason, s.Status.Position, s.Status.Counts, trials)
	}
	stored, err := c.Ledger.LoadStudy(t.Context(), s.Study.ID)
	if err != nil {
		t.Fatal(err)
	}
	starts := map[[2]int]int{}
	for _, e := range evaluations(t, c.log) {
		if !e.Ended {
			starts[[2]int{e.Trial, e.Attempt}]++
		}
	}
	for k, n := range starts {
		if n != 1 {
			t.Errorf("attempt %d of trial %d was run %d times", k[1], k[0], n)
		}
	}
	var took []time.Duration
	for i := range stored.Trials {
		tr := &stored.Trials[i]
		want, state := square(map[string]float64{"x": tr.Point["x"].(float64), "y": tr.Point["y"].(float64)}), study.TrialCompleted
		if want > limit {
			state = study.TrialPruned
		}
		if tr.State != state || tr.Values.First() != want {
			t.Errorf("trial %d is %s with %v, want %s with %g", tr.Number, tr.State, tr.Values, state, want)
			continue
		}
		if state != study.TrialPruned {
			continue
		}
		last := tr.Last()
		if tr.Stopped.Step != first || tr.Stopped.Attempt != last.Number {
			t.Errorf("trial %d was stopped at step %d of attempt %d of %d, want step %d of the last one", tr.Number, tr.Stopped.Step,
				tr.Stopped.Attempt, last.Number, first)
		}
		if points := stored.Curves[tr.Number].Series()[0].Points; points[0].Step != 1 || len(points) < first ||
			points[len(points)-1].Value != want {
			t.Errorf("trial %d: the curve holds %v", tr.Number, points)
		}
		if last.State == study.AttemptPruned {
			took = append(took, last.Ended.Sub(tr.Stopped.At))
		}
	}
	if len(took) < trials/4 {
		t.Fatalf("only %d trials were stopped while they ran", len(took))
	}
	slices.Sort(took)
	t.Logf("%d of %d trials were pruned; from the decision to the program's end: median %v, longest %v",
		s.Status.Counts.Pruned, trials, took[len(took)/2], took[len(took)-1])
	if median := took[len(took)/2]; median > time.Second {
		t.Errorf("a program is stopped %v after the decision, at the median", median)
	}
}
