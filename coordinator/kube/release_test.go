package kube

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	kubetesting "k8s.io/client-go/testing"
)

// A namespace that is being deleted, with the rights in it, leaves the others' studies to be released.
func TestReleaseGoesOn(t *testing.T) {
	teams := []string{"team-a", "team-b", "team-c"}
	var studies []runtime.Object
	for _, namespace := range teams {
		studies = append(studies, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "fantasia.dev/v1", "kind": "Study",
			"metadata": map[string]any{"name": "digits", "namespace": namespace, "uid": "u-" + namespace, "finalizers": []any{Finalizer}},
		}})
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{Studies(): "StudyList"}, studies...)
	client.PrependReactor("list", "studies", func(a kubetesting.Action) (bool, runtime.Object, error) {
		if a.GetNamespace() != "team-b" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(Studies().GroupResource(), "", nil)
	})
	released, err := Release(t.Context(), client, teams, time.Now())
	if released != 2 || err == nil || !strings.Contains(err.Error(), `the studies of namespace "team-b"`) {
		t.Errorf("%d were released, %v; want 2, and an error that names team-b", released, err)
	}
	for _, namespace := range teams {
		u, err := client.Resource(Studies()).Namespace(namespace).Get(t.Context(), "digits", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if held := len(u.GetFinalizers()) > 0; held != (namespace == "team-b") {
			t.Errorf("the study of %s has the finalizers %q", namespace, u.GetFinalizers())
		}
	}
}
