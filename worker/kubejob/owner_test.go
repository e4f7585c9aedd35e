package kubejob

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// The Jobs of a study that is a resource can be owned by it.
func TestTheStudyOwnsItsJobs(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": map[string]any{"name": "digits", "namespace": "team-a", "uid": "u1"},
	}}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{{Group: "fantasia.dev", Version: "v1", Resource: "studies"}: "StudyList"}, u)
	r := &site{
		Runner:    &Runner{options: Options{Client: client}, owners: map[string]metav1.OwnerReference{}},
		namespace: "team-a", ownedBy: studyOwner,
	}
	got, err := r.owner(t.Context(), &messaging.Assignment{StudyName: "team-a.digits"})
	if want := (metav1.OwnerReference{APIVersion: "fantasia.dev/v1", Kind: "Study", Name: "digits", UID: "u1"}); err != nil || *got != want {
		t.Errorf("owner %+v, %v; want %+v", got, err, want)
	}
	if _, err := r.owner(t.Context(), &messaging.Assignment{StudyName: "team-a.other"}); !errors.Is(err, errRefused) {
		t.Errorf("a study without a resource: %v", err)
	}
}
