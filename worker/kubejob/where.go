package kubejob

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	corev1 "k8s.io/api/core/v1"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// locate notes on an attempt's ending where it ran, and when it passed each stage.
func (a *attempt) locate(e evaluation.Ending) evaluation.Ending {
	e.Stages = &messaging.Stages{}
	e.Attributes = []attribute.KeyValue{semconv.K8SNamespaceName(a.namespace)}
	if a.kind.GroupKind() == jobKind {
		e.Attributes = append(e.Attributes, semconv.K8SJobName(a.name))
	}
	if a.sub == nil {
		return e
	}
	pods := a.sub.evidence(time.Now()).pods
	e.Site.Job = a.name
	e.Site.Node, e.Site.Devices = placesOf(pods, a.container)
	*e.Stages = a.sub.passed()
	if p := firstPod(pods, a.container); p != nil {
		e.Attributes = append(e.Attributes, semconv.K8SPodName(p.Name))
		if p.Spec.NodeName != "" {
			e.Attributes = append(e.Attributes, semconv.K8SNodeName(p.Spec.NodeName))
		}
	}
	return e
}

// placesOf returns the nodes of pods, and the devices that their containers of that name have; an empty name is
// the first container of each.
func placesOf(pods []*corev1.Pod, container string) (nodes, devices string) {
	var names, given []string
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			names = append(names, p.Spec.NodeName)
		}
		for i := range p.Spec.Containers {
			c := &p.Spec.Containers[i]
			if container != "" && c.Name != container || container == "" && i > 0 {
				continue
			}
			for name, n := range c.Resources.Limits {
				if strings.Contains(string(name), "/") { // what Kubernetes itself knows has no domain
					given = append(given, fmt.Sprintf("%s=%s", name, n.String()))
				}
			}
		}
	}
	for _, list := range []*[]string{&names, &given} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return strings.Join(names, ","), strings.Join(given, ",")
}
