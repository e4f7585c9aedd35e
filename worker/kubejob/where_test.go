package kubejob

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestPlacesOf(t *testing.T) {
	limits := func(name, gpus string) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
			"cpu": resource.MustParse("2"), "hugepages-2Mi": resource.MustParse("2Mi"), "nvidia.com/gpu": resource.MustParse(gpus),
		}}}
	}
	on := func(node string, containers ...corev1.Container) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node, Containers: containers}}
	}
	for name, tt := range map[string]struct {
		pods                      []*corev1.Pod
		container, nodes, devices string
	}{
		"no pod":      {},
		"no node yet": {pods: []*corev1.Pod{on("", corev1.Container{Name: "train"})}},
		"the first": {pods: []*corev1.Pod{on("n1", limits("train", "1"), limits("proxy", "4"))}, nodes: "n1",
			devices: "nvidia.com/gpu=1"},
		"the named one": {pods: []*corev1.Pod{on("n1", limits("proxy", "4"), limits("train", "1"))}, container: "train", nodes: "n1",
			devices: "nvidia.com/gpu=1"},
		"several pods": {pods: []*corev1.Pod{on("n2", limits("train", "1")), on("n1", limits("train", "1")), on("n2", limits("train", "2"))},
			nodes: "n1,n2", devices: "nvidia.com/gpu=1,nvidia.com/gpu=2"},
		"nothing of a kind": {pods: []*corev1.Pod{on("n1", corev1.Container{Name: "train"})}, nodes: "n1"},
	} {
		if nodes, devices := placesOf(tt.pods, tt.container); nodes != tt.nodes || devices != tt.devices {
			t.Errorf("%s: %q, %q", name, nodes, devices)
		}
	}
}
