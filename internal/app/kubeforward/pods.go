package kubeforward

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// selector matches the pods of the chart's coordinators, and port names their API.
const (
	selector = "app.kubernetes.io/name=fantasia,app.kubernetes.io/component=coordinator"
	port     = "http"
)

// target is a coordinator's pod and the port of its API.
type target struct {
	name   string
	number int32
	secure bool // the API speaks TLS
}

// url returns the address of the API at a local port. A certificate has the name
// localhost, as the chart asks for.
func (t target) url(local uint16) string {
	if t.secure {
		return fmt.Sprintf("https://localhost:%d", local)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", local)
}

// coordinator returns a coordinator's pod of a namespace that is ready.
func (c *Cluster) coordinator(ctx context.Context, namespace string) (target, error) {
	client, err := c.client()
	if err != nil {
		return target{}, err
	}
	list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace).List(ctx,
		metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return target{}, advise(fmt.Errorf("find the coordinators in namespace %s: %w", namespace, err))
	}
	pods := &corev1.PodList{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), pods); err != nil {
		return target{}, fmt.Errorf("read the pods of namespace %s: %w", namespace, err)
	}
	return ready(pods.Items, namespace)
}

// ready returns a coordinator's pod that is ready.
func ready(pods []corev1.Pod, namespace string) (found target, err error) {
	releases := map[string]bool{}
	for i := range pods {
		p := &pods[i]
		releases[p.Labels["app.kubernetes.io/instance"]] = true
		isReady := func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }
		if p.DeletionTimestamp != nil || !slices.ContainsFunc(p.Status.Conditions, isReady) {
			continue
		}
		for _, c := range p.Spec.Containers {
			for _, open := range c.Ports {
				if open.Name == port {
					found = target{name: p.Name, number: open.ContainerPort, secure: probedByTLS(c)}
				}
			}
		}
	}
	switch {
	case len(releases) > 1:
		return target{}, fmt.Errorf("namespace %s has coordinators of several releases: give the address of the right ones with --server",
			namespace)
	case found.name == "":
		return target{}, fmt.Errorf("namespace %s has no coordinator that is ready", namespace)
	}
	return found, nil
}

// probedByTLS reports whether Kubernetes asks by HTTPS whether a container is ready.
func probedByTLS(c corev1.Container) bool {
	return c.ReadinessProbe != nil && c.ReadinessProbe.HTTPGet != nil && c.ReadinessProbe.HTTPGet.Scheme == corev1.URISchemeHTTPS
}
