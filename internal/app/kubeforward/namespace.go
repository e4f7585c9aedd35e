package kubeforward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// podNamespace is the file with the namespace of a pod.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// StudyName returns the name of a resource's study, NAMESPACE.NAME. A name that has a
// namespace already is returned as it is.
func (c *Cluster) StudyName(ctx context.Context, resource string) (string, error) {
	if strings.Contains(resource, ".") {
		return resource, nil
	}
	namespace, err := c.namespace(ctx)
	return namespace + "." + resource, err
}

// namespace returns the studies' namespace.
func (c *Cluster) namespace(ctx context.Context) (string, error) {
	if c.Namespace != "" {
		return c.Namespace, nil
	}
	text, err := c.kubectl(ctx, "config", "view", "--output=json")
	if err != nil {
		return "", fmt.Errorf("reach the cluster: %w", err)
	}
	namespace, err := namespaceOf(text, c.Context)
	if errors.Is(err, errNoContext) && c.Context == "" {
		if inPod, errFile := os.ReadFile(podNamespace); errFile == nil {
			return strings.TrimSpace(string(inPod)), nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("reach the cluster: %w", err)
	}
	return namespace, nil
}

// errNoContext is the error of a kubeconfig without the context that was looked for.
var errNoContext = errors.New("not in the kubeconfig")

// namespaceOf returns the namespace of a context of a kubeconfig, in JSON; of the current one if the
// name is empty.
func namespaceOf(kubeconfig []byte, name string) (string, error) {
	var config struct {
		Current  string `json:"current-context"`
		Contexts []struct {
			Name    string
			Context struct{ Namespace string }
		}
	}
	if err := json.Unmarshal(kubeconfig, &config); err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	if name == "" {
		name = config.Current
	}
	var known []string
	for _, c := range config.Contexts {
		if c.Name != name {
			known = append(known, c.Name)
			continue
		}
		if c.Context.Namespace == "" {
			return "default", nil // as kubectl does
		}
		return c.Context.Namespace, nil
	}
	switch {
	case len(known) == 0:
		return "", fmt.Errorf("a context is %w, which has none: set KUBECONFIG or --kubeconfig", errNoContext)
	case name == "":
		return "", fmt.Errorf("a current context is %w: choose one with --context; known are %s", errNoContext, strings.Join(known, ", "))
	default:
		return "", fmt.Errorf("context %q is %w; known are %s", name, errNoContext, strings.Join(known, ", "))
	}
}
