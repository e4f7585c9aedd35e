//go:build e2e

package podcost

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestARealPod sets the cost of a pod of the cluster that KUBECONFIG names, as a
// service account that may do nothing but patch pods.
func TestARealPod(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if err != nil {
		t.Fatal(err)
	}
	cluster := client(t, config)
	namespace := fmt.Sprintf("fantasia-pod-%d", os.Getpid())
	core := schema.GroupVersion{Version: "v1"}
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	create := func(gv schema.GroupVersion, resource, namespace string, object map[string]any) {
		t.Helper()
		object["apiVersion"] = gv.String()
		if _, err := cluster.Resource(gv.WithResource(resource)).Namespace(namespace).Create(t.Context(),
			&unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	named := func(name string) map[string]any { return map[string]any{"name": name} }
	create(core, "namespaces", "", map[string]any{"kind": "Namespace", "metadata": named(namespace)})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := cluster.Resource(core.WithResource("namespaces")).Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	create(core, "serviceaccounts", namespace, map[string]any{"kind": "ServiceAccount", "metadata": named("w")})
	create(rbac, "roles", namespace, map[string]any{"kind": "Role", "metadata": named("w"), "rules": []any{
		map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"patch"}},
	}})
	create(rbac, "rolebindings", namespace, map[string]any{"kind": "RoleBinding", "metadata": named("w"),
		"roleRef":  map[string]any{"apiGroup": rbac.Group, "kind": "Role", "name": "w"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "w", "namespace": namespace}},
	})
	create(core, "pods", namespace, map[string]any{"kind": "Pod", "metadata": named("w"), "spec": map[string]any{
		"serviceAccountName": "w", "containers": []any{map[string]any{"name": "w", "image": "none.invalid/none", "imagePullPolicy": "Never"}},
	}})

	limited := rest.CopyConfig(config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":w"}
	leader := client(t, limited)
	pods := core.WithResource("pods")
	if _, err := leader.Resource(pods).Namespace(namespace).Get(t.Context(), "w", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the leader reads pods: %v", err)
	}
	if err := (&Keeper{Namespace: namespace, Client: leader}).patch(t.Context(), "w", 42); err != nil {
		t.Fatal(err)
	}
	pod, err := cluster.Resource(pods).Namespace(namespace).Get(t.Context(), "w", metav1.GetOptions{})
	if err != nil || pod.GetAnnotations()[Annotation] != "42" {
		t.Errorf("the pod has the annotations %v, %v", pod.GetAnnotations(), err)
	}
}

// client is a client whose connections end with the test.
func client(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(transport.Transport) })
	c, err := dynamic.NewForConfigAndClient(config, transport)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
