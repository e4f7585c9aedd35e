package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

const module = "github.com/fantasia-hpo/fantasia/"

// cluster is Fantasia over many processes.
type cluster struct {
	*testcluster.Cluster
	t       testing.TB
	dir     string
	log     string // of the evaluations
	workers []*testenv.Process
	// again says that an attempt may start again, where it was when it died.
	again bool
}

func startCluster(t testing.TB, coordinators, workers, slots int, environment ...string) *cluster {
	t.Helper()
	return startBuiltCluster(t, built{lease: "3s"}, coordinators, workers, slots, environment...)
}

// built says how a cluster's programs are built, and which lease workers have.
type built struct {
	flags []string
	lease string
}

// startBuiltCluster is startCluster with other programs. The coordinators get the environment,
// too.
func startBuiltCluster(t testing.TB, o built, coordinators, workers, slots int, environment ...string) *cluster {
	t.Helper()
	dir := t.TempDir()
	c := &cluster{t: t, dir: dir, log: filepath.Join(dir, "evaluations")}
	c.Cluster = testcluster.Start(t, testcluster.Options{
		Coordinators: coordinators, Args: []string{"--worker-lease", o.lease}, Env: environment, Build: o.flags,
	})
	worker := testenv.Build(t, module+"cmd/worker", o.flags...)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range workers {
		c.workers = append(c.workers, testenv.Start(t, worker, []string{
			"--nats", c.NATS, "--slots", fmt.Sprint(slots), "--heartbeat", "500ms", "--gpus", "none", "--pass-env", "E2E_*",
			"--state", filepath.Join(dir, fmt.Sprintf("worker-%d", i)), "--checkpoints", filepath.Join(dir, "checkpoints"), "--", self,
		}, append([]string{programVariable + "=" + c.log, slowVariable + "=300ms"}, environment...), nil))
	}
	return c
}

// create creates the one study.
func (c *cluster) create(algorithm string, trials, parallelism int) {
	c.t.Helper()
	c.Create(fmt.Sprintf(clusterStudy, algorithm, trials, parallelism))
}

const clusterStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: cluster}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}, {name: y, type: float, min: -1, max: 1}]
  algorithm: {name: %s, seed: 1}
  budget: {maxTrials: %d}
  parallelism: %d
  trial: {command: [unused], retries: {lost: 10}}
`

// TestNothingIsLostWhenPartsAreKilled kills the leader three times and a worker
// five times while 16 slots evaluate 200 trials.
func TestNothingIsLostWhenPartsAreKilled(t *testing.T) {
	const trials = 200
	c := startCluster(t, 3, 4, 4)
	c.create("gp", trials, 16)
	for i, ended := range []int{10, 35, 60, 85, 110, 130, 150, 170} {
		if _, over := c.Await("cluster", ended); over {
			t.Fatalf("the study ended before fault %d", i)
		}
		if i%3 == 1 { // faults 1, 4 and 7
			c.KillLeader()
		} else { // faults 0, 2, 3, 5 and 6
			w := c.workers[i%len(c.workers)]
			w.Kill()
			w.Restart()
		}
	}
	s, _ := c.Await("cluster", trials)
	c.verify(s, trials)
}

// verify holds the ledger against what the evaluations logged.
func (c *cluster) verify(s ledger.Summary, trials int) {
	t := c.t
	t.Helper()
	if s.Status.State != study.Completed || s.Status.Counts.Ended() != trials || s.Status.Counts.Open() != 0 {
		t.Errorf("the study is %s (%s) with %+v, want exactly %d ended trials", s.Status.State, s.Status.Reason, s.Status.Counts, trials)
	}
	// The position grows by one with each created and with each ended trial.
	if s.Status.Position != int64(2*trials) {
		t.Errorf("the ledger stands at position %d, want %d: each trial created once and told once", s.Status.Position, 2*trials)
	}
	stored, err := c.Ledger.LoadStudy(t.Context(), s.Study.ID)
	if err != nil {
		t.Fatal(err)
	}
	type key struct{ trial, attempt int }
	started, ended := map[key]int{}, map[key]float64{}
	for _, e := range evaluations(t, c.log) {
		if e.Ended {
			ended[key{e.Trial, e.Attempt}] = e.Value
		} else {
			started[key{e.Trial, e.Attempt}]++
		}
	}
	for k, n := range started {
		if n != 1 && !c.again {
			t.Errorf("attempt %d of trial %d was run %d times", k.attempt, k.trial, n)
		}
	}
	lost, positions := 0, map[int64]bool{}
	for i := range stored.Trials {
		tr := &stored.Trials[i]
		lost += len(tr.Attempts) - 1
		if positions[tr.Ended] || tr.Ended == 0 {
			t.Errorf("trial %d ended at position %d, which is another's or none", tr.Number, tr.Ended)
		}
		positions[tr.Ended] = true
		if tr.State != study.TrialCompleted {
			t.Errorf("trial %d is %s: %+v", tr.Number, tr.State, tr.Last())
			continue
		}
		found := false
		for _, a := range tr.Attempts {
			value, ok := ended[key{tr.Number, a.Number}]
			found = found || ok && value == tr.Values.First()
		}
		if !found {
			t.Errorf("trial %d has the value %v, which no evaluation logged", tr.Number, tr.Values.First())
		}
	}
	if len(stored.Trials) != trials {
		t.Errorf("the ledger holds %d trials, want %d", len(stored.Trials), trials)
	}
	t.Logf("%d evaluations started, %d attempts were lost; workers: %s", len(started), lost, strings.Join(c.names(stored), ", "))
}

// names are the workers that claimed anything.
func (c *cluster) names(stored *ledger.Records) []string {
	seen := map[string]bool{}
	var names []string
	for i := range stored.Trials {
		for _, a := range stored.Trials[i].Attempts {
			if a.Worker != "" && !seen[a.Worker] {
				seen[a.Worker] = true
				names = append(names, a.Worker)
			}
		}
	}
	return names
}
