//go:build e2e && (keda || certmanager)

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// manifests are objects that are created and deleted together.
type manifests struct {
	*cluster
	client  dynamic.Interface
	kinds   meta.RESTMapper
	applied []*unstructured.Unstructured
}

func (c *cluster) manifests() *manifests {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	return &manifests{cluster: c, client: client,
		kinds: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.kube.Discovery()))}
}

// resource returns the client of an object's resource; without a namespace it is
// cluster-scoped.
func (m *manifests) resource(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := u.GroupVersionKind()
	mapping, err := m.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return m.client.Resource(mapping.Resource), nil
	}
	if u.GetNamespace() == "" {
		u.SetNamespace(m.namespace)
	}
	return m.client.Resource(mapping.Resource).Namespace(u.GetNamespace()), nil
}

// add creates an object. It must not exist: one of somebody else is left unchanged.
func (m *manifests) add(u *unstructured.Unstructured) {
	m.t.Helper()
	r, err := m.resource(u)
	if err == nil {
		_, err = r.Create(m.t.Context(), u, metav1.CreateOptions{})
	}
	if err != nil {
		m.t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
	}
	m.applied = append(m.applied, u)
}

// becomes waits until a condition of an object is true, such as Available.
func (m *manifests) becomes(condition string, within time.Duration, u *unstructured.Unstructured) {
	m.t.Helper()
	m.await(within, func(ctx context.Context) error {
		r, err := m.resource(u)
		if err != nil {
			return err
		}
		now, err := r.Get(ctx, u.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(now.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == condition && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("%s %s is not %s: %v", u.GetKind(), u.GetName(), condition, conditions)
	})
}

// deleteAll deletes what was created, last first, and waits until it is gone.
func (m *manifests) deleteAll(ctx context.Context) error {
	var problems []error
	foreground := metav1.DeletePropagationForeground
	for _, u := range slices.Backward(m.applied) {
		r, err := m.resource(u)
		if err == nil {
			err = r.Delete(ctx, u.GetName(), metav1.DeleteOptions{PropagationPolicy: &foreground})
		}
		if err == nil {
			err = poll(ctx, func(ctx context.Context) error {
				switch _, err := r.Get(ctx, u.GetName(), metav1.GetOptions{}); {
				case apierrors.IsNotFound(err):
					return nil
				case err != nil:
					return err
				default:
					return errors.New("still there")
				}
			})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			problems = append(problems, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err))
		}
	}
	return errors.Join(problems...)
}
