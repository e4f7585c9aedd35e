// Package scale lets the leader set the number of pods of a pool of workers: as many as
// the running studies can use, within the pool's limits. It adds pods at once and
// removes them after fewer have sufficed for a while.
package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/scale/stabilize"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// DefaultDownAfter is the default time for which fewer pods must suffice.
const DefaultDownAfter = 5 * time.Minute

// The kinds that can be scaled.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
)

// Target is the resource that runs a pool's workers.
type Target struct {
	Namespace string `yaml:"namespace"`
	// Kind is Deployment or StatefulSet.
	Kind string `yaml:"kind"`
	Name string `yaml:"name"`
	// Min and Max limit the number of pods.
	Min int `yaml:"min"`
	Max int `yaml:"max"`
	// Slots is the number of trials that a pod runs at once.
	Slots int `yaml:"slots"`
	// DownAfter is the time for which fewer pods must suffice before some are removed.
	DownAfter study.Duration `yaml:"downAfter"`
}

// Targets are the targets by pool.
type Targets map[string]Target

// Read reads a YAML file: a map from pools to targets.
func Read(path string) (Targets, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the file of targets: %w", err)
	}
	targets := Targets{}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&targets); err != nil {
		return nil, fmt.Errorf("%s: want a map from pools to namespace, kind, name, min, max, slots and downAfter: %w", path, err)
	}
	var errs []error
	for pool, t := range targets {
		if t.DownAfter == 0 {
			t.DownAfter = study.Duration(DefaultDownAfter)
			targets[pool] = t
		}
		if err := t.check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: pool %s: %w", path, pool, err))
		}
	}
	return targets, errors.Join(errs...)
}

// check returns what is wrong with a target.
func (t *Target) check() error {
	var errs []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	require(t.Namespace != "", "namespace is missing")
	require(t.Name != "", "name is missing")
	require(t.Kind == Deployment || t.Kind == StatefulSet, "kind is %q: want %s or %s", t.Kind, Deployment, StatefulSet)
	require(t.Min >= 0 && t.Max >= max(t.Min, 1), "min is %d and max %d: want 0 ≤ min ≤ max, and max at least 1", t.Min, t.Max)
	require(t.Slots >= 1, "slots is %d: want at least 1", t.Slots)
	require(t.DownAfter > 0, "downAfter is %s: want a positive duration", t.DownAfter)
	return errors.Join(errs...)
}

// Needed returns the number of pods that have the useful slots, within the limits.
func (t *Target) Needed(useful int) int {
	return min(max((useful+t.Slots-1)/t.Slots, t.Min), t.Max)
}

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
