//go:build e2e

package scale_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	module   = "github.com/fantasia-hpo/fantasia/"
	patience = time.Minute
)

// TestTheLeaderScales has a coordinator scale a Deployment and a StatefulSet of
// the cluster that KUBECONFIG names. Their pods need not run.
func TestTheLeaderScales(t *testing.T) {
	config, err := kube.Config()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := fmt.Sprintf("fantasia-scale-%d", os.Getpid())
	create(t, cluster, "", "v1", "Namespace", "namespaces", namespace, nil)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := cluster.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Delete(ctx, namespace,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	labels := map[string]any{"app": "w"}
	spec := map[string]any{
		"replicas": int64(0), "selector": map[string]any{"matchLabels": labels}, "serviceName": "w",
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "w", "image": "none.invalid/none", "imagePullPolicy": "Never"}},
		}},
	}
	create(t, cluster, namespace, "apps/v1", "StatefulSet", "statefulsets", "w", spec)
	delete(spec, "serviceName")
	create(t, cluster, namespace, "apps/v1", "Deployment", "deployments", "w", spec)

	file := filepath.Join(t.TempDir(), "scale.yaml")
	text := fmt.Sprintf("default: {namespace: %[1]s, kind: Deployment, name: w, min: 0, max: 9, slots: 2, downAfter: 12s}\n"+
		"gpu: {namespace: %[1]s, kind: StatefulSet, name: w, min: 1, max: 2, slots: 1, downAfter: 12s}\n", namespace)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	api := testcluster.Start(t, testcluster.Options{Coordinators: 1, Args: []string{"--scale", file}}).Client()
	replicas := func(resource string, want int64) time.Time {
		t.Helper()
		testenv.Eventually(t, patience, func(ctx context.Context) error {
			u, err := cluster.Resource(apps(resource)).Namespace(namespace).Get(ctx, "w", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); got != want {
				return fmt.Errorf("%s has the scale %d, want %d", resource, got, want)
			}
			return nil
		})
		return time.Now()
	}
	replicas("statefulsets", 1) // its least
	study(t, api, "a", "default", 5)
	replicas("deployments", 3) // for 5 slots of 2 a pod
	study(t, api, "b", "default", 3)
	study(t, api, "c", "gpu", 100)
	replicas("deployments", 4)
	replicas("statefulsets", 2) // its most
	for _, name := range []string{"a", "b", "c"} {
		if _, err := api.StopStudy(t.Context(), connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/" + name})); err != nil {
			t.Fatal(err)
		}
	}
	stopped := time.Now()
	if took := replicas("deployments", 0).Sub(stopped); took < 5*time.Second {
		t.Errorf("the Deployment was scaled down after %v", took)
	}
	replicas("statefulsets", 1)
}

func apps(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
}

func create(t *testing.T, cluster dynamic.Interface, namespace, version, kind, resource, name string, spec map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}}}
	if spec != nil {
		u.Object["spec"] = spec
	}
	gv, err := schema.ParseGroupVersion(version)
	if err == nil {
		_, err = cluster.Resource(gv.WithResource(resource)).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func study(t *testing.T, api fantasiav1connect.StudyServiceClient, name, pool string, parallelism int) {
	t.Helper()
	file := fmt.Sprintf(`
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  algorithm: {name: random}
  budget: {maxTrials: 1000}
  parallelism: %d
  pool: %s
  trial: {command: [unused]}
`, name, parallelism, pool)
	if _, err := api.CreateStudy(t.Context(), connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: file})); err != nil {
		t.Fatal(err)
	}
}
