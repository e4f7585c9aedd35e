package kubejob

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A quota counts a deleted Job for a while. One ended Job is deleted for another, and a second one only if that did not help.
func TestOneEndedJobMakesRoom(t *testing.T) {
	for _, test := range []struct {
		counts time.Duration // the quota, what was deleted
		want   int
	}{{4 * time.Second, 1}, {12 * time.Second, 2}} {
		synctest.Test(t, func(t *testing.T) {
			jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
			var ended []runtime.Object
			for _, name := range []string{"a", "b", "c"} {
				job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
				job.SetName(name)
				job.SetNamespace("ns")
				job.SetLabels(map[string]string{LabelConcluded: "true", LabelPool: "default"})
				ended = append(ended, job)
			}
			client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
				map[schema.GroupVersionResource]string{jobs: "JobList"}, ended...)
			began := time.Now()
			client.PrependReactor("create", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
				if time.Since(began) < test.counts {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "new",
						errors.New("exceeded quota: jobs, requested: count/jobs.batch=1, used: count/jobs.batch=3, limited: count/jobs.batch=3"))
				}
				return false, nil, nil
			})
			o := DefaultOptions()
			o.Template, o.Logger = []byte(streamJobTemplate), slog.New(slog.DiscardHandler)
			s := newTestRunner(t, o).home.site
			s.client = client.Resource(jobs).Namespace("ns")
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
			object.SetName("new")
			object.SetLabels(map[string]string{LabelPool: "default"})
			if err := s.ensure(t.Context(), object, assignment(), func(string) {}); err != nil {
				t.Fatal(err)
			}
			left, err := s.client.List(t.Context(), metav1.ListOptions{LabelSelector: LabelConcluded})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(ended) - len(left.Items); got != test.want {
				t.Errorf("a quota that counts what was deleted for %v: %d ended Jobs were deleted, want %d", test.counts, got, test.want)
			}
		})
	}
}
