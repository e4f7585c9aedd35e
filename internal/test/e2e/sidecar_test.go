package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/sidecar"
)

// sidecars are workers beside training loops: two loops a worker.
type sidecars struct {
	workers, loops []*testenv.Process
	addresses      []string
}

func (c *cluster) startSidecars(workers int) *sidecars {
	c.t.Helper()
	var s sidecars
	worker, example := testenv.Build(c.t, module+"cmd/worker"), testenv.Build(c.t, module+"examples/sidecar")
	for i := range workers {
		address := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(c.t))
		s.addresses = append(s.addresses, address)
		s.workers = append(s.workers, testenv.Start(c.t, worker, []string{
			"sidecar", "--nats", c.NATS, "--slots", "2", "--heartbeat", "500ms", "--http", address, "--drain", "5s",
			"--state", filepath.Join(c.dir, fmt.Sprintf("sidecar-%d", i)), "--client-timeout", "4s",
		}, nil, c.Answering(address, "/healthz")))
		for n := range 2 {
			loop := fmt.Sprintf("exec '%s' -client loop-%d -epochs 5 -slow 40ms >> '%s'", example, n, c.log)
			s.loops = append(s.loops, testenv.Start(c.t, "/bin/sh", []string{"-c", loop}, []string{"SIDECAR_URL=http://" + address}, nil))
		}
	}
	return &s
}

const sidecarStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: spirals}
spec:
  objective: {metric: loss, direction: minimize}
  parameters:
    - {name: learning_rate, type: float, min: 1e-3, max: 10, scale: log}
    - {name: weight_decay, type: float, min: 1e-7, max: 1e-1, scale: log}
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: %d}
  parallelism: 4
  trial: {command: [unused], grace: 5s, retries: {lost: 10, failed: 10}}
`

// TestSidecarsLoseNothing kills training loops and their sidecars, stops both
// gracefully, and hands back, while four loops evaluate 60 trials.
func TestSidecarsLoseNothing(t *testing.T) {
	const trials = 60
	c := startCluster(t, 1, 0, 0)
	c.again = true // a loop that was killed gets its attempt again
	s := c.startSidecars(2)
	c.Create(fmt.Sprintf(sidecarStudy, trials))
	c.Await("spirals", 1)
	list, err := c.Client().ListWorkers(t.Context(), connect.NewRequest(&fantasiav1.ListWorkersRequest{}))
	if err != nil || len(list.Msg.GetWorkers()) != len(s.workers) {
		t.Fatalf("the workers are %v (%v), want %d", list, err, len(s.workers))
	}
	for _, w := range list.Msg.GetWorkers() {
		if w.GetRuns() != messaging.RunsSidecar {
			t.Errorf("%s says that it runs %q, want %q", w.GetName(), w.GetRuns(), messaging.RunsSidecar)
		}
	}
	for i, fault := range []struct {
		ended int
		what  func()
	}{
		{4, func() { s.loops[0].Kill(); s.loops[0].Restart() }},
		{10, func() { s.workers[0].Kill(); s.workers[0].Restart() }},
		{16, func() { s.loops[1].Stop(); s.loops[1].Restart() }},
		{22, func() { s.workers[1].Stop(); s.workers[1].Restart() }},
		{28, func() { s.loops[2].Kill() }}, // for good: its trial fails after --client-timeout
		{34, func() { s.handBack(t, 0) }},
		{40, func() { s.loops[0].Kill(); s.workers[0].Kill(); s.workers[0].Restart(); s.loops[0].Restart() }},
	} {
		if _, over := c.Await("spirals", fault.ended); over {
			t.Fatalf("the study ended before fault %d", i)
		}
		fault.what()
	}
	summary, _ := c.Await("spirals", trials)
	c.verify(summary, trials)
	for _, w := range s.workers {
		w.Stop()
		if state := w.State(); state != "exit status 0" {
			t.Errorf("a sidecar ends with %s after SIGTERM, want exit status 0", state)
		}
	}
}

// handBack does what Kubernetes does to a pod with a native sidecar: the hook,
// SIGTERM to the training container, and when that has ended to the sidecar.
func (s *sidecars) handBack(t *testing.T, i int) {
	t.Helper()
	if _, err := sidecar.HandBack(t.Context(), s.addresses[i]); err != nil {
		t.Fatal(err)
	}
	loops := s.loops[2*i : 2*i+2]
	for _, l := range loops {
		select { // there are no more trials: it may have ended by itself
		case <-l.Done():
		case <-time.After(10 * time.Second):
			t.Fatal(errors.New("a loop does not end after the hand-back"))
		}
	}
	start := time.Now()
	s.workers[i].Stop()
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("the sidecar took %s to end with nothing to wait for", took)
	}
	s.workers[i].Restart()
	for _, l := range loops {
		l.Restart()
	}
}
