package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/internal/test/testseed"
	"github.com/fantasia-hpo/fantasia/study"
)

// readState reads the one study in a state directory that nobody uses; nil
// where none was created yet.
func readState(t *testing.T, state string) *ledger.Records {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, err := embedded.StartEtcd(ctx, embedded.EtcdOptions{Dir: filepath.Join(state, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	client, err := server.Client()
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New(client, ledger.Options{})
	all, err := l.Studies(ctx)
	var stored *ledger.Records
	if err == nil && len(all) > 0 {
		stored, err = l.LoadStudy(ctx, all[0].Study.ID)
	}
	if err := errors.Join(err, client.Close(), server.Close()); err != nil {
		t.Fatal(err)
	}
	return stored
}

const resumeStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: resumed}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}, {name: y, type: float, min: -1, max: 1}]
  algorithm: {name: gp, seed: 1}
  budget: {maxTrials: %d}
  parallelism: 4
  trial: {command: [%s], env: {%s: %s, %s: 200ms}}
`

// TestRunGoesOnAfterAnyKill kills `fantasia run` at ten random moments and runs
// it again: the budget is exact, no trial fails, and what had completed is not
// evaluated again.
func TestRunGoesOnAfterAnyKill(t *testing.T) {
	const trials, kills = 60, 10
	rng := rand.New(rand.NewPCG(testseed.Get(), 0))
	dir := t.TempDir()
	state, log := filepath.Join(dir, "state"), filepath.Join(dir, "evaluations")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "study.yaml")
	text := fmt.Sprintf(resumeStudy, trials, self, programVariable, log, slowVariable)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := testenv.Start(t, testenv.Build(t, module+"cmd/fantasia"), []string{"run", file, "--state", state, "--gpus", "none"}, nil, nil)
	completed, logged := map[int]bool{}, 0
	for range kills {
		select {
		case <-run.Done():
		case <-time.After(time.Duration(rng.IntN(1500)) * time.Millisecond):
			run.Kill()
		}
		logged = notAgain(t, log, logged, completed)
		if s := readState(t, state); s != nil {
			for i := range s.Trials {
				if s.Trials[i].State == study.TrialCompleted {
					completed[s.Trials[i].Number] = true
				}
			}
		}
		run.Restart()
	}
	select {
	case <-run.Done():
	case <-time.After(2 * time.Minute):
		t.Fatalf("the study has not ended; completed before the last kill: %d", len(completed))
	}
	notAgain(t, log, logged, completed)
	s := readState(t, state)
	if s == nil || s.Status.State != study.Completed {
		t.Fatalf("the study has not completed: %+v\n%s", s, run.Output())
	}
	if c := s.Status.Counts; c.Completed != trials || c.Ended() != trials || len(s.Trials) != trials {
		t.Errorf("%d trials, counts %+v: want exactly %d, all completed", len(s.Trials), c, trials)
	}
	if s.Status.Position != 2*trials {
		t.Errorf("the ledger stands at position %d, want %d", s.Status.Position, 2*trials)
	}
}

// notAgain checks that no completed trial was started since the log had so many
// lines, and returns how many it has now.
func notAgain(t *testing.T, log string, from int, completed map[int]bool) int {
	t.Helper()
	if _, err := os.Stat(log); err != nil {
		return 0
	}
	all := evaluations(t, log)
	for _, e := range all[min(from, len(all)):] {
		if !e.Ended && completed[e.Trial] {
			t.Errorf("trial %d had completed and was evaluated again (attempt %d)", e.Trial, e.Attempt)
		}
	}
	return len(all)
}
