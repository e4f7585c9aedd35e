package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/testenv"
	"github.com/fantasia-hpo/fantasia/study"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	module = "github.com/fantasia-hpo/fantasia/"
	// leaseTTL is that of the coordinators' leases.
	leaseTTL = 2 * time.Second
)

// cluster is Fantasia over many processes.
type cluster struct {
	t            *testing.T
	log          string // of the evaluations
	etcd         *clientv3.Client
	ledger       *ledger.Ledger
	coordinators map[string]*testenv.Process // by the address of its API
	workers      []*testenv.Process
	http         *http.Client
	nats, dir    string
	// again says that an attempt may start again, where it was when it died.
	again bool
}

func startCluster(t *testing.T, coordinators, workers, slots int) *cluster {
	t.Helper()
	nats, etcd := testenv.StartNATS(t, testenv.NATSConfig{}), testenv.StartEtcd(t)
	dir := t.TempDir()
	c := &cluster{
		t: t, log: filepath.Join(dir, "evaluations"), etcd: testenv.EtcdClient(t, etcd.URL),
		coordinators: map[string]*testenv.Process{}, http: &http.Client{Timeout: 10 * time.Second}, nats: nats.URL, dir: dir,
	}
	t.Cleanup(c.http.CloseIdleConnections)
	c.ledger = ledger.New(c.etcd, ledger.Options{})
	coordinator, worker := testenv.Build(t, module+"cmd/coordinator"), testenv.Build(t, module+"cmd/worker")
	for i := range coordinators {
		address := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
		healthy := func(ctx context.Context) error { return testenv.Answers(ctx, c.http, "http://"+address+"/healthz") }
		c.coordinators[address] = testenv.Start(t, coordinator, []string{
			"--etcd", etcd.URL, "--nats", nats.URL, "--listen", address, "--name", fmt.Sprintf("c%d", i),
			"--lease-ttl", leaseTTL.String(), "--worker-lease", "3s",
		}, nil, healthy)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range workers {
		c.workers = append(c.workers, testenv.Start(t, worker, []string{
			"--nats", nats.URL, "--slots", fmt.Sprint(slots), "--heartbeat", "500ms", "--gpus", "none",
			"--state", filepath.Join(dir, fmt.Sprintf("worker-%d", i)), "--", self,
		}, []string{programVariable + "=" + c.log, slowVariable + "=300ms"}, nil))
	}
	return c
}

// client talks to some replica that lives: any of them answers.
func (c *cluster) client() fantasiav1connect.StudyServiceClient {
	for address, p := range c.coordinators {
		select {
		case <-p.Done():
		default:
			return fantasiav1connect.NewStudyServiceClient(c.http, "http://"+address)
		}
	}
	c.t.Fatal("no coordinator lives")
	return nil
}

// await waits until so many trials have ended, or the study.
func (c *cluster) await(name string, ended int) (ledger.Summary, bool) {
	c.t.Helper()
	var s ledger.Summary
	testenv.Eventually(c.t, 2*time.Minute, func(ctx context.Context) (err error) {
		if s, err = c.ledger.Study(ctx, name); err != nil {
			return err
		}
		if s.Status.State == study.Running && s.Status.Counts.Ended() < ended {
			return fmt.Errorf("%+v have ended, want %d", s.Status.Counts, ended)
		}
		return nil
	})
	return s, s.Status.State != study.Running
}

// leader waits for a leader of an epoch later than a given one.
func (c *cluster) leader(after int64) (p *testenv.Process, address string, epoch int64) {
	c.t.Helper()
	testenv.Eventually(c.t, time.Minute, func(ctx context.Context) (err error) {
		address, epoch, err = election.Leader(ctx, c.etcd, c.ledger.LeaderKey())
		if err == nil && epoch <= after {
			err = errors.New("the old leader's key is still there")
		}
		return err
	})
	if p = c.coordinators[address]; p == nil {
		c.t.Fatalf("the leader advertises %q, which is no coordinator", address)
	}
	return p, address, epoch
}

// killLeader kills whichever coordinator leads, and starts it again once
// another has taken over.
func (c *cluster) killLeader() {
	c.t.Helper()
	p, _, epoch := c.leader(0)
	p.Kill()
	c.leader(epoch)
	p.Restart()
}

// create creates the one study.
func (c *cluster) create(algorithm string, trials, parallelism int) {
	c.t.Helper()
	c.createFile(fmt.Sprintf(clusterStudy, algorithm, trials, parallelism))
}

func (c *cluster) createFile(text string) {
	c.t.Helper()
	testenv.Eventually(c.t, time.Minute, func(ctx context.Context) error {
		_, err := c.client().CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{
			StudyFile: text,
		}))
		if connect.CodeOf(err) == connect.CodeAlreadyExists {
			return nil
		}
		return err
	})
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
		if _, over := c.await("cluster", ended); over {
			t.Fatalf("the study ended before fault %d", i)
		}
		if i%3 == 1 { // faults 1, 4 and 7
			c.killLeader()
		} else { // faults 0, 2, 3, 5 and 6
			w := c.workers[i%len(c.workers)]
			w.Kill()
			w.Restart()
		}
	}
	s, _ := c.await("cluster", trials)
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
	stored, err := c.ledger.LoadStudy(t.Context(), s.Study.ID)
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
			found = found || ok && value == *tr.Value
		}
		if !found {
			t.Errorf("trial %d has the value %v, which no evaluation logged", tr.Number, *tr.Value)
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
