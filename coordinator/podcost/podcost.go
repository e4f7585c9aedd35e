// Package podcost is a duty of whoever leads in a cluster of Kubernetes: it keeps
// the deletion costs of the workers' pods current. When Kubernetes then scales a
// Deployment down, it takes idle workers first, and then those that lose the least.
package podcost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Annotation is where Kubernetes looks for a pod's deletion cost. See
// https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost.
const Annotation = "controller.kubernetes.io/pod-deletion-cost"

const (
	// patchEvery is how often, at most, a pod is patched.
	patchEvery = 10 * time.Second
	// callTimeout bounds one patch.
	callTimeout = 5 * time.Second
)

// Keeper keeps the costs of the pods of some pools while its replica leads.
type Keeper struct {
	// Namespace is where the pods are. A worker has the name of its pod.
	Namespace string
	// Pools are those whose workers' pods are patched.
	Pools  []string
	Client dynamic.Interface
	Logger *slog.Logger
}

// New returns the keeper of the pools' pods in a namespace. The client must be
// allowed to patch these.
func New(namespace string, pools []string, client dynamic.Interface, log *slog.Logger) (*Keeper, error) {
	if namespace == "" {
		return nil, errors.New("the namespace of the workers' pods is unknown: set POD_NAMESPACE from the pod's field metadata.namespace")
	}
	return &Keeper{Namespace: namespace, Pools: pools, Client: client, Logger: log}, nil
}

// Duty is the keeper as a duty of whoever leads.
func (k *Keeper) Duty() coordinator.Duty {
	return coordinator.Duty{Name: "keep pods' deletion costs", Run: func(ctx context.Context, c *coordinator.Coordinator) error {
		return k.run(ctx, c.Workers, k.patch)
	}}
}

// pod is what the keeper knows of one worker's pod.
type pod struct {
	// since is when each running attempt was first heard of.
	since map[messaging.AttemptID]time.Time
	told  bool
	cost  int32 // that was told
	// failure is why the last patch failed, which is logged once.
	failure string
}

// run patches each pod whose cost has changed, until ctx ends.
func (k *Keeper) run(ctx context.Context, workers func() []coordinator.Worker,
	patch func(ctx context.Context, pod string, cost int32) error) error {
	pods := map[string]*pod{}
	for range backoff.Every(ctx, patchEvery) {
		hear(pods, k.Pools, workers(), time.Now())
		for _, name := range slices.Sorted(maps.Keys(pods)) {
			p := pods[name]
			cost := p.now(time.Now())
			if p.told && cost == p.cost {
				continue
			}
			err := patch(ctx, name, cost)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err == nil:
				p.told, p.cost, p.failure = true, cost, ""
			case err.Error() != p.failure:
				p.failure = err.Error()
				k.Logger.Warn("a pod's deletion cost is not current", telemetry.LogError, err)
			}
		}
	}
	return context.Cause(ctx)
}

// hear takes in what the workers run now, and forgets those that are gone.
func hear(pods map[string]*pod, pools []string, workers []coordinator.Worker, now time.Time) {
	heard := map[string]bool{}
	for _, w := range workers {
		name, ok := strings.CutPrefix(w.Worker, w.Pool+".")
		if !ok || !slices.Contains(pools, w.Pool) {
			continue
		}
		heard[name] = true
		p := pods[name]
		if p == nil {
			p = &pod{}
			pods[name] = p
		}
		since := make(map[messaging.AttemptID]time.Time, len(w.Running))
		for _, id := range w.Running {
			since[id] = now
			if before, ok := p.since[id]; ok {
				since[id] = before
			}
		}
		p.since = since
	}
	maps.DeleteFunc(pods, func(name string, _ *pod) bool { return !heard[name] })
}

func (p *pod) now(now time.Time) int32 {
	var invested []time.Duration
	for _, since := range p.since {
		invested = append(invested, now.Sub(since))
	}
	return Cost(invested)
}

// patch sets the annotation of one pod.
func (k *Keeper) patch(ctx context.Context, pod string, cost int32) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{Annotation: strconv.Itoa(int(cost))},
	}})
	if err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	pods := k.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(k.Namespace)
	if _, err := pods.Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch pod %s/%s: %w", k.Namespace, pod, err)
	}
	return nil
}

// Cost is the deletion cost of a pod whose running attempts have taken so long:
// the sum of their seconds, each rounded down to a power of two and at least 1,
// so that it changes ever more rarely. An idle pod costs 0.
func Cost(invested []time.Duration) int32 {
	sum := 0.0
	for _, d := range invested {
		sum += math.Exp2(math.Floor(math.Log2(max(d.Seconds(), 1))))
	}
	return int32(min(sum, math.MaxInt32))
}
