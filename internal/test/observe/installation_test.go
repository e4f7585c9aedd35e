package observe

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

const module = "github.com/fantasia-hpo/fantasia/"

// resource is what OTEL_RESOURCE_ATTRIBUTES says of all processes, as the chart
// has it say.
const resource = "k8s.namespace.name=tuning,k8s.pod.name=pod-0,k8s.node.name=node-a,k8s.container.name=main,service.namespace=release"

// installation is a cluster and a worker that trains networks on digits.
type installation struct {
	*testcluster.Cluster
	t       *testing.T
	worker  *testenv.Process
	metrics string // the worker's address
}

// install starts an installation that exports its traces to an OTLP endpoint.
// Each trial trains for so many epochs.
func install(t *testing.T, endpoint string, epochs int) *installation {
	t.Helper()
	env := []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none", "OTEL_RESOURCE_ATTRIBUTES=" + resource,
	}
	in := &installation{t: t, metrics: fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))}
	in.Cluster = testcluster.Start(t, testcluster.Options{Coordinators: 2, Args: []string{"--worker-lease", "10s"}, Env: env})
	in.worker = testenv.Start(t, testenv.Build(t, module+"cmd/worker"), []string{
		"--nats", in.NATS, "--slots", "2", "--heartbeat", "500ms", "--gpus", "none", "--listen", in.metrics,
		"--state", filepath.Join(t.TempDir(), "worker"), "--",
		testenv.Build(t, module+"examples/digits"), fmt.Sprintf("-epochs=%d", epochs), "${args}",
	}, env, in.Answering(in.metrics, "/healthz"))
	return in
}

// targets are the addresses with metrics.
func (in *installation) targets() []string {
	return append(slices.Collect(maps.Keys(in.Coordinators)), in.metrics)
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
	in.Create(fmt.Sprintf(digits, name, trials))
}

// await waits until so many trials of a study have ended, and returns what is stored.
func (in *installation) await(name string, ended int) *ledger.Records {
	in.t.Helper()
	s, _ := in.Await(name, ended)
	stored, err := in.Ledger.LoadStudy(in.t.Context(), s.Study.ID)
	if err != nil {
		in.t.Fatal(err)
	}
	return stored
}
