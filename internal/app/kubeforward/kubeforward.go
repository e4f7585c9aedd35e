// Package kubeforward reaches the coordinators of a Study resource through the API
// server of its cluster, as kubectl port-forward does.
package kubeforward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/fantasia-hpo/fantasia/study"
)

// selector matches the pods of the chart's coordinators, and port names their API.
const (
	selector = "app.kubernetes.io/name=fantasia,app.kubernetes.io/component=coordinator"
	port     = "http"
)

var (
	studies = schema.GroupVersionResource{Group: study.Group, Version: study.Version, Resource: study.Plural}
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// Cluster says which cluster and which namespace, as kubectl's flags do.
type Cluster struct {
	// Kubeconfig and Context choose the cluster; empty means kubectl's own choice.
	Kubeconfig, Context string
	// Namespace is the studies' namespace; empty means that of the context.
	Namespace string
	// Account is the service account of the namespace whose tokens Token requests, for Audience.
	Account, Audience string

	close func()
}

// lookup limits each look at the cluster.
const lookup = 30 * time.Second

// Load returns the access to the cluster and the namespace.
func (c *Cluster) Load() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.Context}
	overrides.Context.Namespace = c.Namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reach the cluster: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("determine the namespace: %w", err)
	}
	return config, namespace, nil
}

// Client returns a client of the cluster whose calls take half a minute at most.
func (c *Cluster) Client() (dynamic.Interface, error) {
	config, _, err := c.Load()
	if err != nil {
		return nil, err
	}
	bounded := rest.CopyConfig(config)
	bounded.Timeout = lookup
	client, err := dynamic.NewForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return client, nil
}

// StudyName returns the name of a resource's study, NAMESPACE.NAME. A name that has a
// namespace already is returned as it is.
func (c *Cluster) StudyName(resource string) (string, error) {
	if strings.Contains(resource, ".") {
		return resource, nil
	}
	if c.Namespace != "" {
		return c.Namespace + "." + resource, nil
	}
	_, namespace, err := c.Load()
	return namespace + "." + resource, err
}

// Connect makes the coordinators that run a study, NAMESPACE.NAME, reachable at a URL
// until ctx ends or Close is called.
func (c *Cluster) Connect(ctx context.Context, study string) (url string, err error) {
	config, _, err := c.Load()
	if err != nil {
		return "", err
	}
	client, err := c.Client()
	if err != nil {
		return "", err
	}
	home, err := homeOf(ctx, client, study)
	if err != nil {
		return "", err
	}
	pod, err := ready(ctx, client, home)
	if err != nil {
		return "", err
	}
	url, c.close, err = forward(ctx, config, home, pod)
	return url, err
}

// Close ends the connection, if there is one.
func (c *Cluster) Close() {
	if c.close != nil {
		c.close()
	}
}

// homeOf returns the namespace of the coordinators that run a study.
func homeOf(ctx context.Context, client dynamic.Interface, study string) (string, error) {
	namespace, name, _ := strings.Cut(study, ".")
	u, err := client.Resource(studies).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("find study %s in namespace %s: %w", name, namespace, err)
	}
	home, _, err := unstructured.NestedString(u.Object, "status", "coordinatorNamespace")
	if err != nil || home == "" {
		return "", fmt.Errorf("study %s in namespace %s does not say which coordinators run it: give their address with --server", name, namespace)
	}
	return home, nil
}

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

// ready returns a coordinator's pod that is ready.
func ready(ctx context.Context, client dynamic.Interface, namespace string) (found target, err error) {
	list, err := client.Resource(pods).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return target{}, advise(fmt.Errorf("find the coordinators in namespace %s: %w", namespace, err))
	}
	releases := map[string]bool{}
	for i := range list.Items {
		var p corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &p); err != nil {
			return target{}, fmt.Errorf("read pod %s: %w", list.Items[i].GetName(), err)
		}
		releases[p.Labels["app.kubernetes.io/instance"]] = true
		at := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
		if at < 0 || p.DeletionTimestamp != nil {
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
		return target{}, fmt.Errorf("namespace %s has coordinators of several releases: give the address of the right ones with --server", namespace)
	case found.name == "":
		return target{}, fmt.Errorf("namespace %s has no coordinator that is ready", namespace)
	}
	return found, nil
}

// probedByTLS reports whether Kubernetes asks by HTTPS whether a container is ready.
func probedByTLS(c corev1.Container) bool {
	return c.ReadinessProbe != nil && c.ReadinessProbe.HTTPGet != nil && c.ReadinessProbe.HTTPGet.Scheme == corev1.URISchemeHTTPS
}

// advise adds how to do without a right that is missing.
func advise(err error) error {
	if apierrors.IsForbidden(err) || strings.Contains(err.Error(), "forbidden") {
		return fmt.Errorf("%w (without this right, give the address of the coordinators with --server or FANTASIA_SERVER)", err)
	}
	return err
}

// forward forwards a local port to a pod's until done is called.
func forward(ctx context.Context, config *rest.Config, namespace string, pod target) (url string, done func(), err error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return "", nil, fmt.Errorf("reach the cluster: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "", nil, fmt.Errorf("reach the cluster: %w", err)
	}
	address := base.JoinPath("api", "v1", "namespaces", namespace, "pods", pod.name, "portforward")
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	ctx, cancel := context.WithCancel(ctx)
	opened := make(chan struct{})
	f, err := portforward.NewOnAddressesWithContext(ctx, dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", pod.number)}, opened, io.Discard, io.Discard)
	if err != nil {
		cancel()
		return "", nil, fmt.Errorf("forward to pod %s: %w", pod.name, err)
	}
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failed = f.ForwardPorts()
	}()
	done = func() {
		cancel()
		<-ended
	}
	select {
	case <-ended:
		cancel()
		return "", nil, advise(fmt.Errorf("forward to pod %s of namespace %s: %w", pod.name, namespace, errors.Join(failed, ctx.Err())))
	case <-opened:
	}
	ports, err := f.GetPorts()
	if err != nil {
		done()
		return "", nil, fmt.Errorf("forward to pod %s: %w", pod.name, err)
	}
	return pod.url(ports[0].Local), done, nil
}
