package kubejob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/fantasia-hpo/fantasia/internal/base/kubewatch"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/kubecore"
)

const (
	// syncTimeout limits the initial listing of the cluster.
	syncTimeout = 30 * time.Second
	// rightsPatience is how long the rights for it may take to be known to the API server.
	rightsPatience = 5 * time.Second
)

// hub watches all resources of a worker and their pods, with one watch each, and
// notifies their attempts. It is safe for concurrent use.
type hub struct {
	namespace       string
	resources, pods cache.SharedIndexInformer
	cancel          context.CancelFunc
	running         sync.WaitGroup

	mu   sync.Mutex
	subs map[string]*subscription
}

// subscription is what is known about one attempt. The hub's lock guards it.
type subscription struct {
	hub  *hub
	name string
	// container is the name of the program's; empty for the first of a pod.
	container string
	object    *unstructured.Unstructured
	gone      bool
	pods      map[types.UID]*corev1.Pod
	deleted   map[types.UID]time.Time // when the deletion of a pod began
	stages    stages
	changed   chan struct{} // has a capacity of one
}

func newHub(
	ctx context.Context, client dynamic.Interface, core *kubecore.Client, resource schema.GroupVersionResource, namespace, worker string,
	log *slog.Logger,
) (*hub, error) {
	mine := LabelWorker + "=" + worker
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return core.Pods(ctx, namespace, o)
	}
	follow := func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return core.WatchPods(ctx, namespace, o)
	}
	h := &hub{
		namespace: namespace, subs: map[string]*subscription{},
		resources: kubewatch.Resources(client, resource, namespace, mine, cache.Indexers{}),
		pods: kubewatch.Informer(client, list, follow, &corev1.Pod{}, "pods", mine, cache.Indexers{
			LabelJob: func(obj any) ([]string, error) { return []string{jobOf(obj)}, nil },
		}),
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.cancel = cancel
	syncing, stop := context.WithTimeoutCause(ctx, syncTimeout, errors.New("the cluster's API does not answer"))
	defer stop()
	syncing, refuse := context.WithCancelCause(syncing)
	defer refuse(nil)
	refused := func(err error) { time.AfterFunc(rightsPatience, func() { refuse(err) }) }
	for _, informer := range []cache.SharedIndexInformer{h.resources, h.pods} {
		if err := h.start(running, informer, refused, log); err != nil {
			h.close()
			return nil, fmt.Errorf("watch: %w", err)
		}
	}
	if !cache.WaitForCacheSync(syncing.Done(), h.resources.HasSynced, h.pods.HasSynced) {
		h.close()
		return nil, fmt.Errorf("%s and pods cannot be watched in namespace %s: %w", resource.Resource, namespace, context.Cause(syncing))
	}
	return h, nil
}

// start runs an informer. It calls refused if the worker may not list or watch what it watches.
func (h *hub) start(ctx context.Context, informer cache.SharedIndexInformer, refused func(error), log *slog.Logger) error {
	if err := informer.SetTransform(withoutManagedFields); err != nil {
		return err
	}
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		log.Warn("cannot watch the cluster; retrying", telemetry.LogError, err)
		if apierrors.IsForbidden(err) {
			refused(err)
		}
	})
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { h.update(obj, false) },
		UpdateFunc: func(_, obj any) { h.update(obj, false) },
		DeleteFunc: func(obj any) { h.update(obj, true) },
	})
	if err != nil {
		return err
	}
	h.running.Go(func() { informer.RunWithContext(ctx) })
	return nil
}

// withoutManagedFields drops unused fields to save memory.
func withoutManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

// close ends the watching.
func (h *hub) close() {
	h.cancel()
	h.running.Wait()
}

// jobOf returns the name of the attempt's resource that an object is, or belongs to.
func jobOf(obj any) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return m.GetLabels()[LabelJob]
}

func (h *hub) update(obj any, deleted bool) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.subs[jobOf(obj)]; s != nil {
		s.recordObject(obj, deleted)
	}
}

// recordObject records an object's state; for a deleted pod, the last state counts. The caller
// MUST hold the lock.
func (s *subscription) recordObject(obj any, deleted bool) {
	switch o := obj.(type) {
	case *corev1.Pod:
		s.pods[o.UID] = o
		if at, ok := deletionOf(o); ok {
			if _, known := s.deleted[o.UID]; !known {
				s.deleted[o.UID] = at
			}
		}
		s.stages.note(slices.Collect(maps.Values(s.pods)), s.container, time.Now())
	case *unstructured.Unstructured:
		if o.GetName() != s.name {
			return // created by an operator, of the same kind
		}
		s.object, s.gone = o, deleted
	}
	s.touch()
}

func (s *subscription) touch() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// subscribe follows one resource until the subscription is closed.
func (h *hub) subscribe(name, container string) *subscription {
	s := &subscription{
		hub: h, name: name, container: container, changed: make(chan struct{}, 1),
		pods: map[types.UID]*corev1.Pod{}, deleted: map[types.UID]time.Time{},
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs[name] = s
	if obj, ok, err := h.resources.GetStore().GetByKey(h.namespace + "/" + name); ok && err == nil {
		s.recordObject(obj, false)
	}
	if pods, err := h.pods.GetIndexer().ByIndex(LabelJob, name); err == nil {
		for _, p := range pods {
			s.recordObject(p, false)
		}
	}
	return s
}

func (s *subscription) close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	delete(s.hub.subs, s.name)
}

// missing records that the resource was not found.
func (s *subscription) missing() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.gone = true
}

// passed returns when the attempt's pods passed each stage.
func (s *subscription) passed() messaging.Stages {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.stages.exact
}

// evidence returns what is known now.
func (s *subscription) evidence(now time.Time) evidence {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return evidence{
		object: s.object, gone: s.gone, pods: slices.Collect(maps.Values(s.pods)), deleted: maps.Clone(s.deleted), now: now,
	}
}
