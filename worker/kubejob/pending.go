package kubejob

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hopeless are the reasons of a waiting container that do not resolve by themselves.
var hopeless = []string{"InvalidImageName", "ErrImageNeverPull"}

// hindering are reasons that usually need someone's help.
var hindering = []string{
	"ImagePullBackOff", "ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed", "ImageInspectError",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff", "PostStartHookError",
}

// absentImage is what registries and runtimes say of an image that does not exist.
var absentImage = []string{"not found", "manifest unknown", "name unknown", "does not exist"}

// imagePatience is how long a pod waits for an image that does not exist: a build may be about to
// push it.
const imagePatience = 2 * time.Minute

// pending distinguishes a running resource from one whose program has not started.
func pending(e evidence, pods []*corev1.Pod) verdict {
	if suspended, _, _ := unstructured.NestedBool(e.object.Object, "spec", "suspend"); suspended {
		return verdict{state: queued, cause: "it is suspended until its queue admits it (spec.suspend)", code: -1,
			since: e.object.GetCreationTimestamp().Time}
	}
	var preparing *corev1.Pod
	for _, p := range pods {
		// Once a pod runs, its containers' waiting reasons are no start problems.
		if p.Status.Phase != corev1.PodPending || p.DeletionTimestamp != nil {
			continue
		}
		if cause := hindrance(p); cause != "" {
			return verdict{state: waiting, cause: cause, about: p.Name, code: -1, since: p.CreationTimestamp.Time,
				start: isHopeless(p, e.now), hindered: true}
		}
		if began(p).IsZero() {
			preparing = p
		}
	}
	switch {
	case len(pods) == 0:
		return verdict{state: waiting, cause: "it has no pods" + podless(e.object), about: e.object.GetName(), code: -1,
			since: e.object.GetCreationTimestamp().Time}
	case preparing != nil:
		return verdict{state: waiting, cause: preparation(preparing), about: preparing.Name, code: -1, since: scheduled(preparing)}
	}
	return verdict{state: running, code: -1}
}

// began returns when the first of a pod's containers started, also one of its initContainers;
// zero if none has. The sidecar for reports does not count.
func began(p *corev1.Pod) (first time.Time) {
	for _, s := range statuses(p) {
		if s.Name == sidecarName {
			continue
		}
		for _, state := range []corev1.ContainerState{s.LastTerminationState, s.State} {
			var at time.Time
			switch {
			case state.Running != nil:
				at = state.Running.StartedAt.Time
			case state.Terminated != nil:
				at = state.Terminated.StartedAt.Time
			}
			if !at.IsZero() && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first
}

// preparation says what a pod that was given a node waits for.
func preparation(p *corev1.Pod) string {
	for _, s := range statuses(p) {
		if w := s.State.Waiting; w != nil && s.Name != sidecarName {
			return fmt.Sprintf("container %s, image %s: %s", s.Name, s.Image, strings.Trim(w.Reason+": "+w.Message, ": "))
		}
	}
	return fmt.Sprintf("pod %s is being prepared", p.Name)
}

// scheduled returns when a pod got its node, or else when it was created.
func scheduled(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return p.CreationTimestamp.Time
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

// isHopeless reports whether what keeps a pod from starting does not resolve by itself.
func isHopeless(p *corev1.Pod, now time.Time) bool {
	return slices.ContainsFunc(statuses(p), func(s corev1.ContainerStatus) bool {
		w := s.State.Waiting
		if w == nil {
			return false
		}
		missing := strings.Contains(w.Reason, "ImagePull") &&
			slices.ContainsFunc(absentImage, func(text string) bool { return strings.Contains(w.Message, text) })
		return slices.Contains(hopeless, w.Reason) || missing && now.Sub(p.CreationTimestamp.Time) >= imagePatience
	})
}

// exceeded matches what a quota says of a resource that it refuses.
var exceeded = regexp.MustCompile(`exceeded quota: .*requested: (.*), used: .*, limited: (.*)$`)

// outOfRange matches what a LimitRange says of a pod that it refuses.
var outOfRange = regexp.MustCompile(`(maximum|minimum) \S+ usage per \S+ is |\S+ max limit to request ratio per \S+ is `)

// unmendable reports whether what the cluster says of a pod or a resource that it refuses stays
// true however long one waits.
func unmendable(text string) bool {
	for _, sign := range []string{": must specify ", "violates PodSecurity", " is invalid: "} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	if outOfRange.MatchString(text) {
		return true
	}
	m := exceeded.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	limits := quantities(m[2])
	for name, requested := range quantities(m[1]) {
		if limit, ok := limits[name]; ok && requested.Cmp(limit) > 0 {
			return true
		}
	}
	return false
}

// quantities parses "name=quantity" separated by commas. It leaves out what it cannot read.
func quantities(text string) map[string]resource.Quantity {
	found := map[string]resource.Quantity{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if q, err := resource.ParseQuantity(value); err == nil {
			found[name] = q
		}
	}
	return found
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
