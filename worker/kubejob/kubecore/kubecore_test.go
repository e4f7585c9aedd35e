package kubecore

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// answers is a cluster that gives the same answer to each request, and keeps what was asked.
type answers struct {
	status int
	body   string
	asked  []string
}

// RoundTrip implements http.RoundTripper.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked = append(a.asked, r.Method+" "+r.URL.String()+" "+r.Header.Get("Accept"))
	return &http.Response{StatusCode: a.status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

func (a *answers) config() *rest.Config {
	return &rest.Config{Host: "http://cluster", Transport: a, QPS: -1}
}

// A client asks what client-go's clientset asks, and reads the same from the answers. This test is why the
// client is a package of its own: a clientset, compiled for the race detector, takes a minute and a half.
func TestAsksLikeTheClientset(t *testing.T) {
	const body = `{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "p", "namespace": "n"}}]}`
	ours, theirs := &answers{status: 200, body: body}, &answers{status: 200, body: body}
	core, err := New(ours.config())
	if err != nil {
		t.Fatal(err)
	}
	set, err := kubernetes.NewForConfig(theirs.config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, o := t.Context(),
		metav1.ListOptions{LabelSelector: "a=b", FieldSelector: "type=Warning", ResourceVersion: "5", AllowWatchBookmarks: true}
	list, err := core.Pods(ctx, "n", o)
	if want, errWant := set.CoreV1().Pods("n").List(ctx, o); err != nil || errWant != nil || !cmp.Equal(list, want) || len(list.Items) != 1 {
		t.Errorf("pods: %v, %v; the clientset has %v, %v", list, err, want, errWant)
	}
	_, _ = core.Pod(ctx, "n", "p")
	_, _ = set.CoreV1().Pods("n").Get(ctx, "p", metav1.GetOptions{})
	_, _ = core.Events(ctx, "n", o)
	_, _ = set.CoreV1().Events("n").List(ctx, o)
	logs := &corev1.PodLogOptions{Container: "c", Follow: true, Timestamps: true, SinceTime: new(metav1.Unix(1700000000, 0))}
	if stream, err := core.Logs(ctx, "n", "p", logs); err != nil || stream.Close() != nil {
		t.Errorf("logs: %v", err)
	}
	if stream, err := set.CoreV1().Pods("n").GetLogs("p", logs).Stream(ctx); err == nil {
		_ = stream.Close()
	}
	if w, err := core.WatchPods(ctx, "n", o); err != nil {
		t.Errorf("watch: %v", err)
	} else {
		w.Stop()
	}
	if w, err := set.CoreV1().Pods("n").Watch(ctx, o); err == nil {
		w.Stop()
	}
	if diff := cmp.Diff(theirs.asked, ours.asked); diff != "" || len(ours.asked) != 5 {
		t.Errorf("requests differ (-clientset +core):\n%s", diff)
	}
}

// A kind is found with its resource and scope, and a missing one is said to be missing.
func TestMapping(t *testing.T) {
	const body = `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "batch/v1", "resources": [
  {"name": "jobs/status", "kind": "Job", "namespaced": true}, {"name": "jobs", "kind": "Job", "namespaced": true}, {"name": "nodes", "kind": "Node", "namespaced": false}]}`
	a := &answers{status: 200, body: body}
	core, err := New(a.config())
	if err != nil {
		t.Fatal(err)
	}
	kind := func(group, name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: name}
	}
	m, err := core.Mapping(t.Context(), kind("batch", "Job"))
	if err != nil || m.Resource != (schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}) ||
		m.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Errorf("Job is %+v (%v)", m, err)
	}
	if m, err := core.Mapping(t.Context(), kind("", "Node")); err != nil || m.Resource.Resource != "nodes" ||
		m.Scope.Name() != meta.RESTScopeNameRoot {
		t.Errorf("Node is %+v (%v)", m, err)
	}
	if asked := strings.Join(a.asked, "\n"); !strings.Contains(asked, "/apis/batch/v1 ") || !strings.Contains(asked, "/api/v1 ") {
		t.Errorf("asked %s", asked)
	}
	for status, missing := range map[int]bool{200: true, 404: true, 403: false} {
		a.status = status
		_, err := core.Mapping(t.Context(), kind("batch", "CronJob"))
		if _, is := errors.AsType[*meta.NoKindMatchError](err); err == nil || is != missing {
			t.Errorf("with status %d a missing kind is %v", status, err)
		}
	}
}
