package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/scale/stabilize"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// lookEvery is the interval at which the pools are checked.
	lookEvery = 5 * time.Second
	// callTimeout limits the work for one pool.
	callTimeout = 10 * time.Second
	manager     = "fantasia-coordinator"
)

// Scaler scales the targets of pools while its replica leads.
type Scaler struct {
	Targets Targets
	Client  dynamic.Interface
	Logger  *slog.Logger
}

// Duty returns the scaler as a duty of the leader.
func (s *Scaler) Duty() coordinator.Duty {
	return coordinator.Duty{Name: "scale pools", Run: s.Run}
}

// Run scales until ctx ends. A pool that cannot be scaled is retried with the others.
func (s *Scaler) Run(ctx context.Context, c *coordinator.Coordinator) error {
	windows := map[string]*stabilize.Window{}
	for pool := range s.Targets {
		windows[pool] = &stabilize.Window{}
	}
	for range backoff.Every(ctx, lookEvery) {
		useful, err := c.Useful(ctx)
		if err != nil {
			return err
		}
		for _, pool := range slices.Sorted(maps.Keys(s.Targets)) {
			target := s.Targets[pool]
			if err := s.scale(ctx, pool, &target, windows[pool], useful[pool]); err != nil && ctx.Err() == nil {
				s.Logger.Warn("cannot scale a pool", "pool", pool, telemetry.LogError, err)
			}
		}
	}
	return context.Cause(ctx)
}

// scale sets one pool's scale if it is not what it should be.
func (s *Scaler) scale(ctx context.Context, pool string, t *Target, w *stabilize.Window, useful int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	client := s.Client.Resource(resource(t.Kind)).Namespace(t.Namespace)
	scale, err := client.Get(ctx, t.Name, metav1.GetOptions{}, "scale")
	if err != nil {
		return fmt.Errorf("read the scale of %s %s/%s: %w", t.Kind, t.Namespace, t.Name, err)
	}
	current, _, err := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	if err != nil {
		return fmt.Errorf("read the scale of %s %s/%s: %w", t.Kind, t.Namespace, t.Name, err)
	}
	want := w.Decide(time.Now(), t.Needed(useful), int(current), time.Duration(t.DownAfter))
	if want == int(current) {
		return nil
	}
	patch, errPatch := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": scale.GetResourceVersion()},
		"spec":     map[string]any{"replicas": want},
	})
	_, err = client.Patch(ctx, t.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}, "scale")
	if err := errors.Join(errPatch, err); err != nil && !apierrors.IsConflict(err) { // a conflict is retried in the next turn
		return fmt.Errorf("set the scale of %s %s/%s to %d: %w", t.Kind, t.Namespace, t.Name, want, err)
	} else if err == nil {
		s.Logger.Info("pool scaled", "pool", pool, "from", current, "to", want, "useful", useful)
	}
	return nil
}

// resource is the resource of a kind.
func resource(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: strings.ToLower(kind) + "s"}
}
