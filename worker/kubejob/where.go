package kubejob

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// where returns the resource of an attempt, and the nodes and devices that its pods had.
func (a *attempt) where() messaging.Site {
	node, devices := placesOf(a.sub.evidence(time.Now()).pods, a.container)
	return messaging.Site{Job: a.name, Node: node, Devices: devices}
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
