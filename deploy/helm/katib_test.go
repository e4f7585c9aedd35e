package helm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Katib's Suggestion service is reached through a Service of its own, so that an API that is
// open to other networks does not open it too.
func TestKatib(t *testing.T) {
	if text := render(t, values(`networkPolicy.katibFrom=[{"podSelector":{}}]`)...); strings.Contains(text, "6789") ||
		strings.Contains(text, "-katib") {
		t.Error("it is served without coordinator.katib.enabled")
	}
	all := objects(t, render(t, values(`coordinator.katib.enabled=true`, `coordinator.service.type="LoadBalancer"`,
		`networkPolicy.katibFrom=[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kubeflow"}}}]`)...))
	pod := pods(all)["Deployment/f-fantasia-coordinator"]
	coordinator := container(t, pod, "coordinator")
	if got := flag(t, coordinator, "katib-listen"); got != ":6789" {
		t.Errorf("--katib-listen is %q, want :6789, where Katib's clients look", got)
	}
	named := map[string]string{}
	for _, port := range coordinator.list("ports") {
		named[port.text("name")] = fmt.Sprint(port.at("containerPort"))
	}
	service := find(t, all, "Service", "f-fantasia-katib")
	ports := service.list("spec", "ports")
	if len(ports) != 1 || fmt.Sprint(ports[0].at("port")) != "6789" || named[ports[0].text("targetPort")] != "6789" {
		t.Errorf("the Service has the ports %v, the container %v", ports, named)
	}
	if service.text("spec", "type") != "" {
		t.Errorf("the Service has the type %q, want the default, inside of the cluster", service.text("spec", "type"))
	}
	if diff := cmp.Diff(find(t, all, "Service", "f-fantasia").at("spec", "selector"), service.at("spec", "selector")); diff != "" {
		t.Errorf("the Services' pods (-API +Katib):\n%s", diff)
	}
	if got := find(t, all, "Service", "f-fantasia").list("spec", "ports"); len(got) != 1 {
		t.Errorf("the API's Service has the ports %v", got)
	}
	for _, rule := range find(t, all, "NetworkPolicy", "f-fantasia-coordinator").list("spec", "ingress") {
		for _, port := range rule.list("ports") {
			if fmt.Sprint(port.at("port")) == "6789" {
				if from := fmt.Sprint(rule.at("from")); !strings.Contains(from, "kubeflow") || strings.Contains(from, "api-client") {
					t.Errorf("who may reach it: %s", from)
				}
				return
			}
		}
	}
	t.Error("no policy lets anybody reach it")
}
