package kube

import (
	"context"
	"log/slog"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/kubewatch"
	"github.com/fantasia-hpo/fantasia/study"
)

// stored is a resource of the cluster; finalized has the finalizer of an earlier version.
func stored(namespace, name string, uid types.UID, finalized bool) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "fantasia.dev/v1", "kind": "Study"}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID(uid)
	u.SetCreationTimestamp(metav1.NewTime(began))
	if finalized {
		u.SetFinalizers([]string{"other", Finalizer})
	}
	return u
}

func fakeCluster(objects ...runtime.Object) *fake.FakeDynamicClient {
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{Studies(): "StudyList"}, objects...)
}

// runningStudy is what the ledger has of the study of a resource.
func runningStudy(u *unstructured.Unstructured) ledger.Summary {
	s := ledger.Summary{Study: record.Study{ID: bare(u).ID()}, Status: record.Status{State: study.Running}}
	s.Study.Definition.Metadata.Name = u.GetNamespace() + "." + u.GetName()
	return s
}

// TestOrphans looks for studies without a resource: running ones of a namespace that is run and was listed,
// whose own resource, not only one of their name, is missing.
func TestOrphans(t *testing.T) {
	there, again := stored("team-a", "there", "1", false), stored("team-a", "again", "3", false)
	client := fakeCluster(there, again)
	k := &term{Controller: &Controller{Client: client, Logger: slog.New(slog.DiscardHandler)},
		informers: map[string]cache.SharedIndexInformer{}}
	for _, namespace := range []string{"team-a", "team-b"} {
		k.informers[namespace] = kubewatch.Resources(client, Studies(), namespace, "", cache.Indexers{byID: indexID})
	}
	gone, before := stored("team-a", "gone", "4", false), stored("team-a", "again", "2", false)
	ended := runningStudy(gone)
	ended.Study.ID, ended.Status.State = "ended", study.Completed
	plain := runningStudy(gone)
	plain.Study.ID, plain.Study.Definition.Metadata.Name = "plain", "gone"
	all := []ledger.Summary{runningStudy(there), runningStudy(again), runningStudy(before), runningStudy(gone), ended, plain,
		runningStudy(stored("team-b", "not-listed", "5", false)), runningStudy(stored("team-c", "not-run", "6", false))}
	if found := k.orphans(all); len(found) > 0 {
		t.Errorf("before anything was listed, %+v have no resource", found)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.informers["team-a"].RunWithContext(ctx) }()
	defer func() { cancel(); <-done }()
	if !cache.WaitForCacheSync(ctx.Done(), k.informers["team-a"].HasSynced) {
		t.Fatal("the resources are not listed")
	}
	found := k.orphans(all)
	if len(found) != 2 || found[0] != (orphan{"team-a.again", bare(before).ID()}) || found[1] != (orphan{"team-a.gone", bare(gone).ID()}) {
		t.Errorf("%+v have no resource, want the earlier one of team-a.again, and team-a.gone", found)
	}
}

// A study is left alone if the API server does not say that its resource is gone. Without a coordinator, stop would
// panic if it tried to stop it.
func TestOrphansThatAreNone(t *testing.T) {
	u := stored("team-a", "digits", "1", false)
	for name, answer := range map[string]error{
		"it is there":   nil,
		"not permitted": apierrors.NewForbidden(Studies().GroupResource(), "", nil),
		"no definition": apierrors.NewNotFound(Studies().GroupResource(), ""),
		"no answer":     apierrors.NewTimeoutError("etcd", 1),
	} {
		client := fakeCluster(u)
		client.PrependReactor("list", "studies", func(kubetesting.Action) (bool, runtime.Object, error) { return answer != nil, nil, answer })
		k := &term{Controller: &Controller{Client: client, Logger: slog.New(slog.DiscardHandler)}}
		if err := k.stop(t.Context(), orphan{"team-a.digits", bare(u).ID()}); (err == nil) != (answer == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The finalizer of an earlier version is taken off, and those of others stay.
func TestFree(t *testing.T) {
	client := fakeCluster(stored("team-a", "digits", "1", true))
	k := &term{Controller: &Controller{Client: client}}
	r, err := Read(stored("team-a", "digits", "1", true))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.free(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	u, err := client.Resource(Studies()).Namespace("team-a").Get(t.Context(), "digits", metav1.GetOptions{})
	if err != nil || len(u.GetFinalizers()) != 1 || u.GetFinalizers()[0] != "other" {
		t.Errorf("the finalizers are %q, %v; want only that of others", u.GetFinalizers(), err)
	}
}

// A resource that was deleted, and that nobody may let go of, does not say that its study runs.
func TestResourceThatCannotGo(t *testing.T) {
	r := resource(t)
	r.Status = r.next(good, view{id: r.ID(), status: &record.Status{State: study.Running}}, began)
	s := r.next(Verdict{Reason: ReasonDeleted, Message: "stays"}, view{}, began.Add(time.Minute))
	if s.State != StateDeleted || s.Reason != "stays" {
		t.Errorf("its status is %+v", s)
	}
}
