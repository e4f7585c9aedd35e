// Package kubeforward reaches the coordinators of a Study resource through the API
// server of its cluster, as kubectl port-forward does. Kubectl itself would be a second program
// that must be installed, kept running, and pointed at another pod after a failover.
package kubeforward

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fantasia-hpo/fantasia/study"
)

var studies = schema.GroupVersionResource{Group: study.Group, Version: study.Version, Resource: study.Plural}

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

// client returns a client of the cluster whose calls take half a minute at most.
func (c *Cluster) client() (dynamic.Interface, error) {
	config, _, err := c.Load()
	if err != nil {
		return nil, err
	}
	config.Timeout = lookup
	client, err := dynamic.NewForConfig(config)
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

// ErrNoStudy is returned for a resource that is not in the cluster.
var ErrNoStudy = errors.New("not found")

// Study returns a Study resource. The error is ErrNoStudy only if the cluster has a definition of
// studies, but not this one.
func (c *Cluster) Study(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	u, err := client.Resource(studies).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return nil, errors.New("the cluster has no definition of studies; want the cluster that the study ran in")
	case apierrors.IsNotFound(err):
		return nil, ErrNoStudy
	}
	return u, err //nolint:wrapcheck // callers say which study
}

// Connect makes the coordinators that run a study, NAMESPACE.NAME, reachable at a URL
// until ctx ends or Close is called.
func (c *Cluster) Connect(ctx context.Context, study string) (url string, err error) {
	namespace, name, _ := strings.Cut(study, ".")
	u, err := c.Study(ctx, namespace, name)
	if err != nil {
		return "", fmt.Errorf("find study %s in namespace %s: %w", name, namespace, err)
	}
	home, _, _ := unstructured.NestedString(u.Object, "status", "coordinatorNamespace")
	if home == "" {
		return "", fmt.Errorf("study %s in namespace %s does not say which coordinators run it: give their address with --server", name,
			namespace)
	}
	pod, err := c.coordinator(ctx, home)
	if err != nil {
		return "", err
	}
	config, _, err := c.Load()
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

// advise adds how to do without a right that is missing.
func advise(err error) error {
	if strings.Contains(err.Error(), "forbidden") {
		return fmt.Errorf("%w (without this right, give the address of the coordinators with --server or FANTASIA_SERVER)", err)
	}
	return err
}
