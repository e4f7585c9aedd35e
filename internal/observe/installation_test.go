package observe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
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

const module = "github.com/fantasia-hpo/fantasia/"

// resource is what OTEL_RESOURCE_ATTRIBUTES says of all processes, as the chart
// has it say.
const resource = "k8s.namespace.name=tuning,k8s.pod.name=pod-0,k8s.node.name=node-a,k8s.container.name=main,service.namespace=release"

// installation is NATS, etcd, two coordinators, and a worker that trains networks
// on digits, all as processes.
type installation struct {
	t            *testing.T
	etcd         *clientv3.Client
	ledger       *ledger.Ledger
	coordinators map[string]*testenv.Process // by the address of its API
	worker       *testenv.Process
	metrics      string // the worker's address
	http         *http.Client
}

// install starts an installation that exports its traces to an OTLP endpoint.
// Each trial trains for so many epochs.
func install(t *testing.T, endpoint string, epochs int) *installation {
	t.Helper()
	nats, etcd := testenv.StartNATS(t, testenv.NATSConfig{}), testenv.StartEtcd(t)
	in := &installation{
		t: t, etcd: testenv.EtcdClient(t, etcd.URL), coordinators: map[string]*testenv.Process{},
		http: &http.Client{Timeout: 10 * time.Second},
	}
	t.Cleanup(in.http.CloseIdleConnections)
	in.ledger = ledger.New(in.etcd, ledger.Options{})
	env := []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none", "OTEL_RESOURCE_ATTRIBUTES=" + resource,
	}
	healthy := func(address, path string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := get(ctx, "http://"+address+path, "*/*")
			return err
		}
	}
	coordinator := testenv.Build(t, module+"cmd/coordinator")
	for i := range 2 {
		address := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
		in.coordinators[address] = testenv.Start(t, coordinator, []string{
			"--etcd", etcd.URL, "--nats", nats.URL, "--listen", address, "--name", fmt.Sprintf("c%d", i),
			"--lease-ttl", "2s", "--worker-lease", "10s",
		}, env, healthy(address, "/healthz"))
	}
	in.metrics = fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	in.worker = testenv.Start(t, testenv.Build(t, module+"cmd/worker"), []string{
		"--nats", nats.URL, "--slots", "2", "--heartbeat", "500ms", "--gpus", "none", "--listen", in.metrics,
		"--state", filepath.Join(t.TempDir(), "worker"), "--",
		testenv.Build(t, module+"examples/digits"), fmt.Sprintf("-epochs=%d", epochs), "${args}",
	}, env, healthy(in.metrics, "/healthz"))
	return in
}

// digits is a study of which the second trial fails: momentum is to be below 1.
const digits = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: error, direction: minimize}
  parameters:
    - {name: learning_rate, type: float, min: 1e-3, max: 1, scale: log}
    - {name: hidden, type: int, min: 8, max: 64, scale: log}
    - {name: momentum, type: float, min: 0, max: 1}
  initial:
    - {learning_rate: 0.1, hidden: 32, momentum: 0.5}
    - {learning_rate: 0.1, hidden: 32, momentum: 1}
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: %d}
  parallelism: 2
  trial: {command: [unused]}
`

// create creates a study of digits.
func (in *installation) create(name string, trials int) {
	in.t.Helper()
	testenv.Eventually(in.t, time.Minute, func(ctx context.Context) error {
		var err error
		for address, p := range in.coordinators {
			if p.State() != "" {
				continue
			}
			client := fantasiav1connect.NewStudyServiceClient(in.http, "http://"+address)
			_, err = client.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: fmt.Sprintf(digits, name, trials)}))
			if err == nil || connect.CodeOf(err) == connect.CodeAlreadyExists {
				return nil
			}
		}
		return err
	})
}

// await waits until so many trials of a study have ended, and returns what is stored.
func (in *installation) await(name string, ended int) *ledger.Records {
	in.t.Helper()
	var s ledger.Summary
	testenv.Eventually(in.t, 2*time.Minute, func(ctx context.Context) (err error) {
		if s, err = in.ledger.Study(ctx, name); err != nil {
			return err
		}
		if s.Status.State == study.Running && s.Status.Counts.Ended() < ended {
			return fmt.Errorf("%+v have ended, want %d", s.Status.Counts, ended)
		}
		return nil
	})
	stored, err := in.ledger.LoadStudy(in.t.Context(), s.Study.ID)
	if err != nil {
		in.t.Fatal(err)
	}
	return stored
}

// leader waits for a leader of an epoch later than a given one.
func (in *installation) leader(after int64) (p *testenv.Process, address string, epoch int64) {
	in.t.Helper()
	testenv.Eventually(in.t, time.Minute, func(ctx context.Context) (err error) {
		address, epoch, err = election.Leader(ctx, in.etcd, in.ledger.LeaderKey())
		if err == nil && epoch <= after {
			err = errors.New("the old leader's key is still there")
		}
		return err
	})
	if p = in.coordinators[address]; p == nil {
		in.t.Fatalf("the leader advertises %q, which is no coordinator", address)
	}
	return p, address, epoch
}
