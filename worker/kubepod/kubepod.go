// Package kubepod keeps the deletion cost of a worker's own pod current. When
// Kubernetes scales a Deployment down, it then removes idle workers first, followed by
// those that lose the least.
package kubepod

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Annotation is the annotation of a pod's deletion cost. See
// https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost.
const Annotation = "controller.kubernetes.io/pod-deletion-cost"

const (
	// patchEvery is the least time between patches of the pod.
	patchEvery = 10 * time.Second
	// callTimeout limits one patch.
	callTimeout = 5 * time.Second
)

// Pod is the pod that a worker runs in. It is safe for concurrent use.
type Pod struct {
	patch func(ctx context.Context, cost int32) error
	log   *slog.Logger

	mu sync.Mutex
	// since holds when each running attempt was first reported.
	since map[messaging.AttemptID]time.Time
}

// New returns the pod of a name in a namespace. It uses the pod's own service account,
// which must be allowed to patch pods.
func New(namespace, name string, log *slog.Logger) (*Pod, error) {
	if namespace == "" || name == "" {
		return nil, fmt.Errorf("the pod's namespace is %q and its name %q: set POD_NAMESPACE and POD_NAME from the pod's fields", namespace, name)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("locate the pod's cluster: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a Kubernetes client: %w", err)
	}
	return newPod(patcher(client, namespace, name), log), nil
}

func newPod(patch func(context.Context, int32) error, log *slog.Logger) *Pod {
	return &Pod{patch: patch, log: log, since: map[messaging.AttemptID]time.Time{}}
}

// patcher returns a function that sets the annotation of one pod.
func patcher(client dynamic.Interface, namespace, name string) func(context.Context, int32) error {
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
	return func(ctx context.Context, cost int32) error {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{Annotation: strconv.Itoa(int(cost))},
		}})
		if err != nil {
			return fmt.Errorf("write the patch: %w", err)
		}
		if _, err := pods.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("patch pod %s/%s: %w", namespace, name, err)
		}
		return nil
	}
}

// Watch wraps the bus, from whose heartbeats the pod learns what runs.
func (p *Pod) Watch(bus messaging.Worker) messaging.Worker { return &watched{bus, p} }

type watched struct {
	messaging.Worker
	pod *Pod
}

// Heartbeat implements messaging.Worker.
func (w *watched) Heartbeat(ctx context.Context, h *messaging.Heartbeat) error {
	w.pod.hear(h.Running, time.Now())
	return w.Worker.Heartbeat(ctx, h)
}

// hear records what runs now.
func (p *Pod) hear(running []messaging.AttemptID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := make(map[messaging.AttemptID]time.Time, len(running))
	for _, id := range running {
		since[id] = now
		if before, ok := p.since[id]; ok {
			since[id] = before
		}
	}
	p.since = since
}

// Run patches the pod whenever its cost has changed, until ctx ends.
func (p *Pod) Run(ctx context.Context) {
	ticker := time.NewTicker(patchEvery)
	defer ticker.Stop()
	last, known := int32(0), false
	for {
		if cost := p.cost(time.Now()); !known || cost != last {
			call, cancel := context.WithTimeout(ctx, callTimeout)
			err := p.patch(call, cost)
			cancel()
			if err == nil {
				last, known = cost, true
			} else if ctx.Err() == nil {
				p.log.Warn("cannot update the pod's deletion cost", telemetry.LogError, err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (p *Pod) cost(now time.Time) int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var invested []time.Duration
	for _, since := range p.since {
		invested = append(invested, now.Sub(since))
	}
	return Cost(invested)
}

// Cost returns the deletion cost of a pod from the running times of its attempts: the
// sum of their seconds, each rounded down to a power of two and at least 1, so that it
// changes less and less often. An idle pod costs 0.
func Cost(invested []time.Duration) int32 {
	sum := 0.0
	for _, d := range invested {
		sum += math.Exp2(math.Floor(math.Log2(max(d.Seconds(), 1))))
	}
	return int32(min(sum, math.MaxInt32))
}
