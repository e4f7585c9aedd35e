package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/fantasia-hpo/fantasia/internal/base/kubewatch"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// othersAfter is how old a resource of another namespace must be before it is told that
// nobody watches it: another installation may be about to take it up.
const othersAfter = 15 * time.Second

// watchOthers returns an informer of all namespaces, so that resources outside of the
// controller's namespaces can be told that nobody runs them. It returns nil if the
// controller runs all namespaces, or may not list them.
func (t *term) watchOthers(ctx context.Context) (cache.SharedIndexInformer, error) {
	if len(t.Namespaces) == 0 {
		return nil, nil
	}
	_, err := t.Client.Resource(Studies()).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		t.Logger.Info("may not list the studies of other namespaces, so it cannot tell them that nobody runs them", telemetry.LogError, err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the studies of other namespaces: %w", err)
	}
	informer := kubewatch.Resources(t.Client, Studies(), "", "", cache.Indexers{})
	seen := func(object any) {
		u, ok := object.(*unstructured.Unstructured)
		if !ok || slices.Contains(t.Namespaces, u.GetNamespace()) {
			return
		}
		if r, err := Read(u); err == nil && r.unattended(t.Home) {
			age := time.Since(r.Created)
			t.queue.AddAfter(item{other: r.Namespace + "/" + r.Name}, max(0, othersAfter-age))
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: seen,
		UpdateFunc: func(_, now any) { seen(now) }}); err != nil {
		return nil, fmt.Errorf("watch the studies of other namespaces: %w", err)
	}
	t.others = informer
	return informer, informer.SetTransform(slim)
}

// unattended reports whether no coordinator has seen a resource's present spec: its
// status is empty, or says that nobody watches it. The same is true of one that the coordinators of
// the namespace home have run, since they no longer run those of its namespace.
func (r *Resource) unattended(home string) bool {
	c := meta.FindStatusCondition(r.Status.Conditions, ConditionAccepted)
	ours := home != "" && r.Status.CoordinatorNamespace == home
	if r.Deleting || c == nil || c.Reason != ReasonNotWatched {
		return !r.Deleting && (c == nil || ours)
	}
	return c.ObservedGeneration != r.Generation
}

// disown tells a resource of another namespace that nobody runs its study.
func (t *term) disown(ctx context.Context, key string) error {
	object, exists, err := t.others.GetIndexer().GetByKey(key)
	u, ok := object.(*unstructured.Unstructured)
	if err != nil || !exists || !ok {
		return err
	}
	r, err := Read(u)
	if err != nil || !r.unattended(t.Home) {
		return err
	}
	return t.apply(ctx, r, r.abandoned(t.Namespaces, time.Now()))
}

// abandoned returns the status of a resource whose study nobody runs, while coordinators run those of
// other namespaces. If it ran, nobody sees any more how it goes on.
func (r *Resource) abandoned(run []string, now time.Time) Status {
	message := fmt.Sprintf("no coordinator runs the studies of namespace %s; the coordinators that say this run those of: %s. Ask the "+
		"operator of Fantasia to add the namespace (studies.namespaces in the chart)",
		r.Namespace, strings.Join(run, ", "))
	next := r.Status
	next.ObservedGeneration, next.Conditions = r.Generation, slices.Clone(r.Status.Conditions)
	set := func(kind string, status metav1.ConditionStatus) {
		meta.SetStatusCondition(&next.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: ReasonNotWatched, Message: clip(message),
			ObservedGeneration: r.Generation, LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second)),
		})
	}
	set(ConditionAccepted, metav1.ConditionFalse)
	if next.State == study.Running {
		next.State, next.Reason = StateUnknown, clip(message)
		set(ConditionProgressing, metav1.ConditionUnknown)
	}
	return next
}
