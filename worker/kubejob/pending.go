package kubejob

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hopeless are the reasons of a waiting container that do not resolve by themselves.
var hopeless = []string{"InvalidImageName", "ErrImageNeverPull"}

// hindering are reasons that usually need someone's help.
var hindering = []string{
	"ImagePullBackOff", "ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed", "ImageInspectError",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff", "PostStartHookError",
}

// pending distinguishes a running resource from a waiting one. A suspended resource
// waits for a queue, which is fine.
func pending(object *unstructured.Unstructured, pods []*corev1.Pod) verdict {
	if suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); suspended {
		return verdict{state: running, code: -1}
	}
	for _, p := range pods {
		// Once a pod runs, its containers' waiting reasons are no start problems.
		if p.Status.Phase != corev1.PodPending || p.DeletionTimestamp != nil {
			continue
		}
		if cause := hindrance(p); cause != "" {
			return verdict{state: waiting, cause: cause, code: -1, since: p.CreationTimestamp.Time, start: isHopeless(p)}
		}
	}
	if len(pods) == 0 {
		return verdict{state: waiting, cause: "it has no pods" + podless(object), code: -1, since: object.GetCreationTimestamp().Time}
	}
	return verdict{state: running, code: -1}
}

// podless returns a resource's own explanation of why it has no pods: a quota, an
// admission policy, the security level of the namespace.
func podless(object *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, element := range slices.Backward(conditions) {
		if c, ok := element.(map[string]any); ok {
			if message, ok := c["message"].(string); ok && message != "" {
				return fmt.Sprintf(": %v: %s", c["type"], message)
			}
		}
	}
	return "; see kubectl describe"
}

func statuses(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

func isHopeless(p *corev1.Pod) bool {
	return slices.ContainsFunc(statuses(p), func(s corev1.ContainerStatus) bool {
		return s.State.Waiting != nil && slices.Contains(hopeless, s.State.Waiting.Reason)
	})
}

// hindrance describes what keeps a pod from starting; empty if nothing does.
func hindrance(p *corev1.Pod) string {
	for _, s := range statuses(p) {
		w := s.State.Waiting
		if w != nil && (slices.Contains(hopeless, w.Reason) || slices.Contains(hindering, w.Reason)) {
			return fmt.Sprintf("container %s, image %s: %s", s.Name, s.Image, strings.Trim(w.Reason+": "+w.Message, ": "))
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("no node for pod %s: %s", p.Name, strings.Trim(c.Reason+": "+c.Message, ": "))
		}
	}
	return ""
}
