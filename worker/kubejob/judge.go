package kubejob

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
)

const (
	// exitRetry is the exit code that asks for a retry (EX_TEMPFAIL of sysexits.h).
	exitRetry = 75
	// unreachable is the time after a pod's expected deletion when its node counts as
	// lost.
	unreachable = 30 * time.Second
	// startError is the reason of a container that could not start.
	startError = "StartError"
)

// state is the state of an attempt's resource.
type state int

// The states of a resource.
const (
	running     state = iota // the default while nothing else is known
	queued                   // it is suspended until a queue admits it
	waiting                  // its program has not started; cause says why
	succeeded                // the program ended successfully
	failed                   // it has failed; cause says how
	outOfMemory              // it was killed for using too much memory
	disrupted                // the cluster evicted a pod, which costs no retry
	retry                    // the program asked to be run again
	deadline                 // it ran longer than its deadline in the cluster
)

// verdict is the judgement of a resource and its pods.
type verdict struct {
	state state
	cause string
	// code is the exit code of the program, or -1 if unknown.
	code int
	// start means that the program could not be started.
	start bool
	// since is when the time began that a waiting or queued resource may take, and about the
	// name of the pod or resource that waits.
	since time.Time
	about string
	// hindered means that the pod's own state says what hinders it.
	hindered bool
}

// evidence is what is known about an attempt in the cluster.
type evidence struct {
	// object is the resource; nil until it was seen.
	object *unstructured.Unstructured
	// gone means that it was deleted, but not by this worker.
	gone bool
	// pods are all pods seen so far, in their last known state.
	pods []*corev1.Pod
	// deleted holds, by pod, the time when its deletion began: the last state may be
	// from the end of the deletion.
	deleted map[types.UID]time.Time
	now     time.Time
}

// judge determines the state of an attempt. success and failure are the conditions of
// its kind; container is the name of the program's container, where empty means the
// first of a pod.
func judge(e evidence, success, failure *jobpolicy.Condition, container string) verdict {
	pods := slices.SortedFunc(slices.Values(e.pods), func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	switch {
	case e.gone, e.object != nil && e.object.GetDeletionTimestamp() != nil:
		return verdict{state: disrupted, cause: "it was deleted by someone else", code: -1}
	case e.object == nil:
		return verdict{state: running, code: -1}
	case failure.Holds(e.object.Object):
		return failedBecause(e, pods, container)
	case success.Holds(e.object.Object):
		// A pod that was told to end may have exited successfully without finishing.
		// Others were replaced, or were no longer needed.
		ended := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.Status.Phase != corev1.PodSucceeded })
		if cause := cmp.Or(taken(ended, container), removed(e, ended, container)); cause != "" {
			return verdict{state: disrupted, cause: cause, code: -1}
		}
		return verdict{state: succeeded}
	}
	for _, p := range pods {
		if p.DeletionTimestamp != nil && !terminal(p) && e.now.Sub(p.DeletionTimestamp.Time) > unreachable {
			return verdict{state: disrupted, cause: fmt.Sprintf("node %s does not answer", p.Spec.NodeName), code: -1}
		}
	}
	return pending(e, pods)
}

func terminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// failedBecause determines why a resource failed. Evictions come first, then pods that
// failed by themselves: when one pod fails, a Job deletes the others.
func failedBecause(e evidence, pods []*corev1.Pod, container string) verdict {
	reason, message := failedCondition(e.object)
	if cause := taken(pods, container); cause != "" {
		return verdict{state: disrupted, cause: cause, code: -1}
	}
	// The pod may be gone; the Job still has the reason.
	if reason == "PodFailurePolicy" && strings.Contains(message, "DisruptionTarget") {
		return verdict{state: disrupted, cause: message, code: -1}
	}
	if reason == deadlineExceeded {
		return verdict{state: deadline, cause: message, code: -1}
	}
	for _, p := range pods {
		if _, deleted := e.deletion(p, container); deleted {
			continue
		}
		if v, ok := podEnd(p, container); ok {
			return v
		}
	}
	if cause := removed(e, pods, container); cause != "" {
		return verdict{state: disrupted, cause: cause, code: -1}
	}
	cause := strings.Trim(reason+": "+message, ": ")
	return verdict{state: failed, cause: cmp.Or(cause, "failed without giving a reason"), code: -1}
}

// failedCondition returns a resource's own condition of its failure.
func failedCondition(object *unstructured.Unstructured) (reason, message string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, element := range conditions {
		c, ok := element.(map[string]any)
		if ok && c["type"] == "Failed" && c["status"] == "True" {
			reason, _ = c["reason"].(string)
			message, _ = c["message"].(string)
			return reason, message
		}
	}
	reason, _, _ = unstructured.NestedString(object.Object, "status", "reason")
	message, _, _ = unstructured.NestedString(object.Object, "status", "message")
	return reason, message
}

// taken names the pod that the cluster took away, and says why; empty if none.
func taken(pods []*corev1.Pod, container string) string {
	for _, p := range pods {
		if v, ok := podEnd(p, container); ok && v.state == disrupted {
			return v.cause
		}
	}
	return ""
}

// removed names the pod that was deleted before its program ended.
func removed(e evidence, pods []*corev1.Pod, container string) string {
	for _, p := range pods {
		if at, ok := e.deletion(p, container); ok {
			return fmt.Sprintf("pod %s was deleted at %s", p.Name, at.UTC().Format(time.TimeOnly))
		}
	}
	return ""
}

// deletion returns when the deletion of a pod began, if its program was still running.
func (e evidence) deletion(p *corev1.Pod, container string) (time.Time, bool) {
	at, ok := e.deleted[p.UID]
	ended := programEnd(p, container)
	return at, ok && (ended.IsZero() || !ended.Before(at))
}

// deletionOf returns when the deletion of a pod began, according to its state.
func deletionOf(p *corev1.Pod) (time.Time, bool) {
	if p.DeletionTimestamp == nil {
		return time.Time{}, false
	}
	at := p.DeletionTimestamp.Time
	if s := p.DeletionGracePeriodSeconds; s != nil {
		at = at.Add(-time.Duration(*s) * time.Second)
	}
	return at, true
}

// programStatus returns the status of the program's container, or nil if there is none
// yet.
func programStatus(p *corev1.Pod, container string) *corev1.ContainerStatus {
	if container == "" && len(p.Spec.Containers) > 0 {
		container = p.Spec.Containers[0].Name
	}
	for i, s := range p.Status.ContainerStatuses {
		if s.Name == container {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// programEnd returns when the program ended; zero if it has not.
func programEnd(p *corev1.Pod, container string) time.Time {
	if s := programStatus(p, container); s != nil && s.State.Terminated != nil {
		return s.State.Terminated.FinishedAt.Time
	}
	return time.Time{}
}

// podEnd says how a pod was taken away or failed; ok is false if it was not. This is the table of all its ways, in
// their order: a pod has several of these marks, and the kubelet writes them at different times.
//
//	DisruptionTarget before the program's end  disrupted    pre-emption, taints, the eviction API, a node short of something
//	OOMKilled                                  outOfMemory  the container's own limit
//	reason DeadlineExceeded                    deadline     its activeDeadlineSeconds
//	reason Evicted                             failed       its own limit of storage: without DisruptionTarget. A pod whose
//	                                                        program then exits with 0 has no mark: see overStorage
//	failed without containers                  disrupted    the node did not take it
//	ContainerStatusUnknown                     disrupted    the node lost it
//	an exit code                               failed, or retry if the program asks for it
func podEnd(p *corev1.Pod, container string) (v verdict, ok bool) {
	s := programStatus(p, container)
	unknown := s != nil && s.State.Terminated != nil && s.State.Terminated.Reason == "ContainerStatusUnknown"
	target, evicted := disruption(p, container)
	switch {
	case evicted:
		return verdict{state: disrupted, cause: fmt.Sprintf("pod %s was evicted: %s: %s", p.Name, target.Reason, target.Message), code: -1}, true
	case p.Status.Phase == corev1.PodFailed && len(p.Status.ContainerStatuses) == 0 &&
		p.Status.Reason != deadlineExceeded && p.Status.Reason != evictedReason:
		return verdict{state: disrupted, cause: fmt.Sprintf("the node rejected pod %s: %s: %s", p.Name, p.Status.Reason, p.Status.Message),
			code: -1}, true
	case unknown && p.Status.Reason != deadlineExceeded && p.Status.Reason != evictedReason:
		return verdict{state: disrupted, cause: fmt.Sprintf("the node lost pod %s: %s", p.Name, s.State.Terminated.Message), code: -1}, true
	}
	if s != nil {
		if v, ok := containerFailure(p, s); ok {
			return v, true
		}
	}
	if v, ok := podReason(p); ok {
		return v, true
	}
	for _, s := range statuses(p) {
		if s.Name == sidecarName {
			continue
		}
		if v, ok := containerFailure(p, &s); ok {
			v.cause = fmt.Sprintf("container %s: %s", s.Name, v.cause)
			if v.state == retry { // only the program may ask for a retry
				v.state = failed
			}
			return v, true
		}
	}
	return verdict{}, false
}

// The reasons of a pod that the kubelet ended.
const (
	deadlineExceeded = "DeadlineExceeded"
	evictedReason    = "Evicted"
)

// disruption returns the condition by which the cluster took a pod away before its program had ended.
func disruption(p *corev1.Pod, container string) (corev1.PodCondition, bool) {
	ended := programEnd(p, container)
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue &&
			(ended.IsZero() || !ended.Before(c.LastTransitionTime.Time)) {
			return c, true
		}
	}
	return corev1.PodCondition{}, false
}

// podReason describes how the kubelet ended a pod for what the pod itself did.
func podReason(p *corev1.Pod) (verdict, bool) {
	switch p.Status.Reason {
	case deadlineExceeded:
		return verdict{state: deadline, cause: p.Status.Message, code: -1}, true
	case evictedReason:
		return verdict{state: failed, cause: "evicted: " + p.Status.Message, code: -1}, true
	}
	return verdict{}, false
}

func containerFailure(p *corev1.Pod, s *corev1.ContainerStatus) (verdict, bool) {
	t := s.State.Terminated
	if t == nil || t.ExitCode == 0 {
		return verdict{}, false
	}
	v := verdict{state: failed, code: int(t.ExitCode), cause: fmt.Sprintf("exit code %d", t.ExitCode)}
	ended, byKubelet := podReason(p)
	switch {
	case t.Reason == "OOMKilled":
		v.state, v.cause = outOfMemory, "out of memory (OOMKilled)"+memoryLimit(p, s.Name)
	case t.Reason == startError || t.Reason == "ContainerCannotRun":
		v.start, v.cause = true, "cannot start: "+t.Message
	case byKubelet: // what the program exits with when it is told to end says nothing
		v.state, v.cause = ended.state, ended.cause
	case t.ExitCode == exitRetry:
		v.state, v.cause = retry, fmt.Sprintf("the program asked for a retry (exit code %d)", exitRetry)
	}
	return v, true
}

// memoryKill describes a process that was killed for memory in a program's container that ended
// successfully all the same; empty if there was none. A node that kills single processes of a
// container, as with cgroup v1, reports that in this way.
func memoryKill(pods []*corev1.Pod, container string) string {
	for _, p := range pods {
		s := programStatus(p, container)
		if s == nil || s.State.Terminated == nil || s.State.Terminated.ExitCode != 0 || s.State.Terminated.Reason != "OOMKilled" {
			continue
		}
		return fmt.Sprintf("a process of container %s was killed for its memory (OOMKilled)%s, but the container ended with "+
			"exit code 0", s.Name, memoryLimit(p, s.Name))
	}
	return ""
}

// limitsStorage reports whether the kubelet may evict a pod for the storage that it uses itself.
func limitsStorage(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil
	}) || slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool {
		_, ok := c.Resources.Limits[corev1.ResourceEphemeralStorage]
		return ok
	})
}

func memoryLimit(p *corev1.Pod, container string) string {
	for _, c := range p.Spec.Containers {
		if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && c.Name == container {
			return fmt.Sprintf(": its limit is %s", limit.String())
		}
	}
	return ""
}
