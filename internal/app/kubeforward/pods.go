package kubeforward

import (
	"encoding/json"
	"fmt"
	"slices"
)

// target is a coordinator's pod and the port of its API.
type target struct {
	name   string
	number int
	secure bool // the API speaks TLS
}

// url returns the address of the API at a local port. A certificate has the name
// localhost, as the chart asks for.
func (t target) url(local string) string {
	if t.secure {
		return "https://localhost:" + local
	}
	return "http://127.0.0.1:" + local
}

// pod is what is read of a pod.
type pod struct {
	Metadata struct {
		Name              string
		Labels            map[string]string
		DeletionTimestamp string
	}
	Spec   struct{ Containers []container }
	Status struct{ Conditions []condition }
}

type condition struct{ Type, Status string }

type container struct {
	Ports []struct {
		Name          string
		ContainerPort int
	}
	ReadinessProbe struct{ HTTPGet struct{ Scheme string } }
}

// ready returns a coordinator's pod that is ready, of a list of pods in JSON.
func ready(list []byte, namespace string) (found target, err error) {
	var pods struct{ Items []pod }
	if err := json.Unmarshal(list, &pods); err != nil {
		return target{}, fmt.Errorf("read the pods of namespace %s: %w", namespace, err)
	}
	releases := map[string]bool{}
	for _, p := range pods.Items {
		releases[p.Metadata.Labels["app.kubernetes.io/instance"]] = true
		if p.Metadata.DeletionTimestamp != "" || !slices.Contains(p.Status.Conditions, condition{"Ready", "True"}) {
			continue
		}
		for _, c := range p.Spec.Containers {
			for _, open := range c.Ports {
				if open.Name == port {
					found = target{name: p.Metadata.Name, number: open.ContainerPort, secure: c.ReadinessProbe.HTTPGet.Scheme == "HTTPS"}
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
