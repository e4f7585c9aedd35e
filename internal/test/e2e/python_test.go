//go:build python

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

// pythonScript tunes a function through the server that its argument names, and logs each
// evaluation as main_test.go's program does.
const pythonScript = `
import json, os, random, sys, time
import fantasia_hpo as fantasia

server, log = sys.argv[1:]
study = fantasia.create_study(
    name="python", storage=server, metric="loss", direction="minimize", algorithm="random", seed=1, max_trials=120,
    parameters={"x": fantasia.Float(-1, 1), "y": fantasia.Float(-1, 1)},
)
out = os.open(log, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

def write(trial, ended, value=0.0):
    line = {"trial": trial.number, "attempt": trial.attempt, "ended": ended, "value": value, "process": os.getpid()}
    os.write(out, (json.dumps(line) + "\n").encode())

def objective(trial):
    write(trial, False)
    for step in range(3):
        time.sleep(random.uniform(0.02, 0.12))
        trial.report(1.0 / (step + 1))
    value = trial.params["x"] ** 2 + trial.params["y"] ** 2
    write(trial, True, value)
    return value

study.optimize(objective, n_jobs=4)
assert study.state == "COMPLETED", study.state
assert len(study.trials) == 120, len(study.trials)
assert study.best_value == min(t.value for t in study.trials)
`

// TestPythonClient kills the leader twice under a script of the Python client that
// evaluates 120 trials, four at once, through three coordinators. The script ends by
// itself, and each trial is evaluated in one attempt and told once.
func TestPythonClient(t *testing.T) {
	const trials = 120
	dir := t.TempDir()
	c := &cluster{t: t, dir: dir, log: filepath.Join(dir, "evaluations")}
	c.Cluster = testcluster.Start(t, testcluster.Options{Coordinators: 3, Args: []string{"--worker-lease", "20s"}})
	_, address, _ := c.Leader(0)
	client, err := filepath.Abs("../../../clients/python/src")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script.py")
	if err := os.WriteFile(script, []byte(pythonScript), 0o600); err != nil {
		t.Fatal(err)
	}
	python := testenv.Start(t, testenv.Python(), []string{script, "http://" + address, c.log},
		[]string{"PYTHONPATH=" + client, "PYTHONDONTWRITEBYTECODE=1"}, nil)
	for i, n := range []int{25, 75} {
		if _, over := c.Await("python", n); over {
			t.Fatalf("the study ended before leader %d was killed", i+1)
		}
		c.KillLeader()
	}
	<-python.Done()
	if state := python.State(); state != "exit status 0" {
		t.Fatalf("the script: %s", state)
	}
	s, _ := c.Await("python", trials)
	if s.Status.State != study.Completed {
		t.Errorf("the study is %s (%s)", s.Status.State, s.Status.Reason)
	}
	c.verify(s, trials)
	stored, err := c.Ledger.LoadStudy(t.Context(), s.Study.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range stored.Trials {
		if n := len(tr.Attempts); n != 1 {
			t.Errorf("trial %d has %d attempts", tr.Number, n)
		}
	}
	if n := len(evaluations(t, c.log)); n != 2*trials {
		t.Errorf("%d lines of evaluations, want two for each of %d: its start and its end", n, trials)
	}
}
