package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/base/kubewatch"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// pollEvery is the interval at which the studies are checked, and so the least time
	// between two writes of a running study's status.
	pollEvery = 2 * time.Second
	// reconcilers is the number of resources that are reconciled at once.
	reconcilers = 4
	// callTimeout limits the work for one resource.
	callTimeout = 30 * time.Second
	// retryAtFirst and retryAtLast limit the pauses before a resource is retried.
	retryAtFirst, retryAtLast = 200 * time.Millisecond, 30 * time.Second
	// byID is the index of resources by their studies' ids.
	byID = "id"
)

// Controller runs the studies of a cluster while its replica leads. It is safe for
// concurrent use; each run has its own state.
type Controller struct {
	Rules
	Client dynamic.Interface
	// Replica is the name of this coordinator, for events.
	Replica string
	// Home is the namespace of the coordinators; empty if they run outside of the cluster.
	Home string
	// Namespaces are the namespaces whose studies are run; none means all.
	Namespaces []string
	// Ledger provides the trials with the best values.
	Ledger *ledger.Ledger
	Logger *slog.Logger
}

// Duty returns the controller as a duty of the leader.
func (k *Controller) Duty() coordinator.Duty {
	return coordinator.Duty{Name: "studies of Kubernetes", Run: k.Run}
}

// item is work to do: a resource, by its key in the cache; the study of a deleted resource, by its id;
// a resource of a namespace that is not run, by its key; or a running study without a resource.
type item struct {
	key, gone, other string
	orphan           orphan
}

// term is one run of a controller.
type term struct {
	*Controller
	c *coordinator.Coordinator
	// informers has one informer a namespace, or one for all under the empty name.
	informers map[string]cache.SharedIndexInformer
	// others is the informer of all namespaces; nil without one.
	others cache.SharedIndexInformer
	queue  workqueue.TypedRateLimitingInterface[item]

	mu sync.Mutex
	// shown holds, by id, what was known of resources' studies when their resources were
	// last reconciled.
	shown map[string]shown
	// workers is what was known of them at the last poll.
	workers workerPools
	// met holds the ids of the studies that were seen in this term.
	met map[string]bool
}

// shown is what a resource's status tells of its study.
type shown struct {
	status record.Status
	stall  stall
}

// Run watches the resources and reconciles each after every change of it or of its
// study, until ctx ends.
func (k *Controller) Run(ctx context.Context, c *coordinator.Coordinator) error {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.FromSlogHandler(k.Logger.Handler())))
	limits := workqueue.NewTypedItemExponentialFailureRateLimiter[item](retryAtFirst, retryAtLast)
	t := &term{Controller: k, c: c, queue: workqueue.NewTypedRateLimitingQueue(limits), shown: map[string]shown{}, met: map[string]bool{},
		informers: map[string]cache.SharedIndexInformer{}}
	var running sync.WaitGroup
	defer running.Wait()
	defer t.queue.ShutDown()
	defer cancel()
	for _, namespace := range namespaces(k.Namespaces) {
		informer, err := t.inform(namespace)
		if err != nil {
			return fmt.Errorf("watch the studies of Kubernetes: %w", err)
		}
		t.informers[namespace] = informer
	}
	for _, informer := range t.informers { // one that cannot list must not keep the others from their work
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	others, err := t.watchOthers(ctx)
	if err != nil {
		return err
	}
	if others != nil {
		running.Go(func() { others.RunWithContext(ctx) })
	}
	for range reconcilers {
		running.Go(func() { t.work(ctx) })
	}
	return t.poll(ctx)
}

// namespaces returns the namespaces to request; the empty name means all.
func namespaces(given []string) []string {
	if len(given) == 0 {
		return []string{""}
	}
	return given
}

// inform returns the informer of a namespace's resources.
func (t *term) inform(namespace string) (cache.SharedIndexInformer, error) {
	informer := kubewatch.Resources(t.Client, Studies(), namespace, "", cache.Indexers{byID: indexID})
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: t.changed, UpdateFunc: func(_, now any) { t.changed(now) }, DeleteFunc: t.deleted,
	})
	return informer, errors.Join(err, informer.SetTransform(slim))
}

// slim drops large fields that are not needed.
func slim(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
	}
	return object, nil
}

func indexID(object any) ([]string, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("unexpected %T in the cache of studies", object)
	}
	return []string{bare(u).ID()}, nil
}

// bare returns a resource without its spec and status.
func bare(u *unstructured.Unstructured) *Resource {
	return &Resource{UID: u.GetUID(), Created: u.GetCreationTimestamp().Time}
}

// changed queues a resource.
func (t *term) changed(object any) {
	if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
		t.queue.Add(item{key: key})
	}
}

// deleted deletes the study of a resource that is gone. A list that lacks a resource which was seen
// before says so, too: the API server never answers an informer with an older state.
func (t *term) deleted(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		t.queue.Add(item{gone: bare(u).ID()})
	}
}

// poll checks the studies, and queues the resources of those that have changed since they were shown,
// and those whose resource is missing.
func (t *term) poll(ctx context.Context) error {
	for range backoff.Every(ctx, pollEvery) {
		all, err := t.c.Summaries(ctx)
		if err != nil {
			return err
		}
		for _, id := range t.stale(all, workerPoolsOf(t.c.Workers(), time.Since(t.Began))) {
			t.study(id)
		}
		for _, o := range t.orphans(all) {
			t.queue.Add(item{orphan: o})
		}
	}
	return context.Cause(ctx)
}

// stale returns the ids of the studies that differ from what was shown, or are gone.
func (t *term) stale(all []ledger.Summary, workers workerPools) (ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.workers = workers
	present := make(map[string]bool, len(all))
	for i := range all {
		id := all[i].Study.ID
		present[id] = true
		now := shown{all[i].Status, workers.stall(&all[i])}
		if was, ok := t.shown[id]; !ok || !reflect.DeepEqual(was, now) {
			ids = append(ids, id)
		}
	}
	for id := range t.shown {
		if !present[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// note records what is shown of a study; nil means that there is no such study.
func (t *term) note(id string, known *ledger.Summary) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known == nil {
		delete(t.shown, id)
		delete(t.met, id)
	} else {
		t.shown[id] = shown{known.Status, t.workers.stall(known)}
	}
}

// stall returns why a study makes no progress.
func (t *term) stall(known *ledger.Summary) stall {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.workers.stall(known)
}

// study queues the resource of a study, if it has one.
func (t *term) study(id string) {
	for _, o := range t.resourcesOf(id) {
		t.changed(o)
	}
}

// resourcesOf returns the resource of a study, as far as the caches have it.
func (t *term) resourcesOf(id string) (all []any) {
	for _, informer := range t.informers {
		objects, err := informer.GetIndexer().ByIndex(byID, id)
		if err != nil {
			t.Logger.Error("cannot find the resource of a study", "id", id, telemetry.LogError, err)
		}
		all = append(all, objects...)
	}
	return all
}

// work processes the queue until it is shut down.
func (t *term) work(ctx context.Context) {
	for {
		next, down := t.queue.Get()
		if down {
			return
		}
		if err := t.see(ctx, next); err == nil || ctx.Err() != nil {
			t.queue.Forget(next)
		} else {
			t.Logger.Warn("cannot reconcile a Study resource; retrying", telemetry.LogStudy, next.key+next.gone+next.other+next.orphan.name,
				telemetry.LogError, err)
			t.queue.AddRateLimited(next)
		}
		t.queue.Done(next)
	}
}

// see does what one item needs.
func (t *term) see(ctx context.Context, i item) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if i.gone != "" {
		return t.forget(ctx, i.gone)
	}
	if i.other != "" {
		return t.disown(ctx, i.other)
	}
	if i.orphan.id != "" {
		return t.stop(ctx, i.orphan)
	}
	u, err := t.cached(i.key)
	if err != nil || u == nil {
		return err
	}
	r, err := Read(u)
	if err != nil {
		return err
	}
	return t.reconcile(ctx, r)
}

// cached returns the last known state of a resource, or nil if it is gone.
func (t *term) cached(key string) (*unstructured.Unstructured, error) {
	for _, informer := range t.informers {
		object, exists, err := informer.GetIndexer().GetByKey(key)
		if err != nil {
			return nil, fmt.Errorf("find %s in the cache: %w", key, err)
		}
		if u, ok := object.(*unstructured.Unstructured); ok && exists {
			return u, nil
		}
	}
	return nil, nil
}
