// Package kubeforward reaches the coordinators of a Study resource through the API
// server of its cluster. It calls the program kubectl, which logs in to every cluster that its users
// log in to.
package kubeforward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/study"
)

// selector matches the pods of the chart's coordinators, and port names their API.
const (
	selector = "app.kubernetes.io/name=fantasia,app.kubernetes.io/component=coordinator"
	port     = "http"
)

// Cluster says which cluster and which namespace, as kubectl's flags do.
type Cluster struct {
	// Kubeconfig and Context choose the cluster; empty means kubectl's own choice.
	Kubeconfig, Context string
	// Namespace is the studies' namespace; empty means that of the context.
	Namespace string
	// Account is the service account of the namespace whose tokens Token requests, for Audience.
	Account, Audience string
	// Stdin and Stderr are for programs that kubectl starts to log in to the cluster: they may show where to
	// do that, and ask something.
	Stdin  io.Reader
	Stderr io.Writer

	close func()
}

// Resource is a Study resource.
type Resource struct {
	UID     string
	Created time.Time
	// home is the namespace of the coordinators that run the study.
	home string
}

// ErrNoStudy is returned for a resource that is not in the cluster.
var ErrNoStudy = errors.New("not found")

// Study returns a Study resource. The error is ErrNoStudy only if the cluster has a definition of
// studies, but not this one.
func (c *Cluster) Study(ctx context.Context, namespace, name string) (*Resource, error) {
	text, err := c.get(ctx, fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s/%s", study.Group, study.Version, url.PathEscape(namespace), study.Plural, url.PathEscape(name)))
	if err != nil {
		switch words := err.Error(); {
		case strings.Contains(words, fmt.Sprintf("(NotFound): %s.%s %q not found", study.Plural, study.Group, name)):
			err = ErrNoStudy
		case strings.Contains(words, "(NotFound)"):
			err = errors.New("the cluster has no definition of studies; want the cluster that the study ran in")
		}
		return nil, err
	}
	var r struct {
		Metadata struct {
			UID               string
			CreationTimestamp time.Time
		}
		Status struct{ CoordinatorNamespace string }
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	return &Resource{UID: r.Metadata.UID, Created: r.Metadata.CreationTimestamp, home: r.Status.CoordinatorNamespace}, nil
}

// Connect makes the coordinators that run a study, NAMESPACE.NAME, reachable at a URL
// until ctx ends or Close is called.
func (c *Cluster) Connect(ctx context.Context, study string) (url string, err error) {
	namespace, name, _ := strings.Cut(study, ".")
	r, err := c.Study(ctx, namespace, name)
	if err != nil {
		return "", fmt.Errorf("find study %s in namespace %s: %w", name, namespace, err)
	}
	if r.home == "" {
		return "", fmt.Errorf("study %s in namespace %s does not say which coordinators run it: give their address with --server", name, namespace)
	}
	pod, err := c.coordinator(ctx, r.home)
	if err != nil {
		return "", err
	}
	url, c.close, err = c.forward(ctx, r.home, pod)
	return url, err
}

// Close ends the connection, if there is one.
func (c *Cluster) Close() {
	if c.close != nil {
		c.close()
	}
}

// coordinator returns a coordinator's pod of a namespace that is ready.
func (c *Cluster) coordinator(ctx context.Context, namespace string) (target, error) {
	text, err := c.get(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods?labelSelector=%s", url.PathEscape(namespace), url.QueryEscape(selector)))
	if err != nil {
		return target{}, advise(fmt.Errorf("find the coordinators in namespace %s: %w", namespace, err))
	}
	return ready(text, namespace)
}
