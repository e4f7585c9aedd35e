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
)

const (
	// exitRetry is the exit code that asks for a retry (EX_TEMPFAIL of sysexits.h).
	exitRetry = 75
	// unreachable is how long after a pod should have been gone its node counts
	// as lost.
	unreachable = 30 * time.Second
	// startError is why a container has ended that did not start.
	startError = "StartError"
)

// state is where an attempt's resource stands.
type state int

// The states of a resource.
const (
	running     state = iota // or not yet known to be anything else
	waiting                  // a pod cannot start; cause says why
	succeeded                // the program has ended well
	failed                   // it has failed; cause says how
	outOfMemory              // it was killed for its memory
	disrupted                // the cluster took a pod away: free of charge
	retry                    // the program asked to be run again
	deadline                 // it ran longer than the cluster was told
)

// verdict is what a resource and its pods tell.
type verdict struct {
	state state
	cause string
	// code is the exit code of the program; -1 where it is not known.
	code int
	// start says that the program could not be started.
	start bool
	// since is when a waiting pod was made.
	since time.Time
}

// evidence is what is known of an attempt in the cluster.
type evidence struct {
	// object is the resource; nil while it has not been seen.
	object *unstructured.Unstructured
	// gone: it was deleted, though not by this worker.
	gone bool
	// pods are all that were seen of it, in their last known state.
	pods []*corev1.Pod
	// deleted says when the deletion of a pod began: its last state may tell of
	// the end of it.
	deleted map[types.UID]time.Time
	now     time.Time
}

// judge tells where an attempt stands. success and failure are the conditions of
// its kind, container the name of the program's (empty: the first of a pod).
func judge(e evidence, success, failure *condition, container string) verdict {
	pods := slices.SortedFunc(slices.Values(e.pods), func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	switch {
	case e.gone, e.object != nil && e.object.GetDeletionTimestamp() != nil:
		return verdict{state: disrupted, cause: "somebody else deleted it", code: -1}
	case e.object == nil:
		return verdict{state: running, code: -1}
	case failure.holds(e.object.Object):
		return failedBecause(e, pods, container)
	case success.holds(e.object.Object):
		// One that was told to end may have ended well, halfway. Others have been
		// replaced, or were not needed any more.
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
	return pending(e.object, pods)
}

func terminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// failedBecause finds out why a resource has failed. What the cluster took away
// comes first, then what has failed by itself: when one pod fails, a Job deletes
// the others.
func failedBecause(e evidence, pods []*corev1.Pod, container string) verdict {
	reason, message := failedCondition(e.object)
	if cause := taken(pods, container); cause != "" {
		return verdict{state: disrupted, cause: cause, code: -1}
	}
	// The pod may be gone; the Job still says why it has failed.
	if reason == "PodFailurePolicy" && strings.Contains(message, "DisruptionTarget") {
		return verdict{state: disrupted, cause: message, code: -1}
	}
	if reason == "DeadlineExceeded" {
		return verdict{state: deadline, cause: message, code: -1}
	}
	for _, p := range pods {
		if _, deleted := e.deletion(p, container); deleted {
			continue
		}
		if v, ok := podFailure(p, container); ok {
			return v
		}
	}
	if cause := removed(e, pods, container); cause != "" {
		return verdict{state: disrupted, cause: cause, code: -1}
	}
	cause := strings.Trim(reason+": "+message, ": ")
	return verdict{state: failed, cause: cmp.Or(cause, "it has failed, and says not why"), code: -1}
}

// failedCondition is what a resource's own condition says of its failure.
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

// taken says which pod the cluster took away, and why; empty for none. One whose
// program had ended before does not count.
func taken(pods []*corev1.Pod, container string) string {
	for _, p := range pods {
		ended := programEnd(p, container)
		for _, c := range p.Status.Conditions {
			if c.Type != corev1.DisruptionTarget || c.Status != corev1.ConditionTrue {
				continue
			}
			if ended.IsZero() || !ended.Before(c.LastTransitionTime.Time) {
				return fmt.Sprintf("pod %s was taken away: %s: %s", p.Name, c.Reason, c.Message)
			}
		}
		if p.Status.Phase == corev1.PodFailed && len(p.Status.ContainerStatuses) == 0 && p.Status.Reason != "DeadlineExceeded" {
			return fmt.Sprintf("the node did not take pod %s: %s: %s", p.Name, p.Status.Reason, p.Status.Message)
		}
		if s := programStatus(p, container); s != nil && s.State.Terminated != nil && s.State.Terminated.Reason == "ContainerStatusUnknown" {
			return fmt.Sprintf("the node has lost pod %s: %s", p.Name, s.State.Terminated.Message)
		}
	}
	return ""
}

// removed says which pod was deleted before its program had ended.
func removed(e evidence, pods []*corev1.Pod, container string) string {
	for _, p := range pods {
		if at, ok := e.deletion(p, container); ok {
			return fmt.Sprintf("pod %s was deleted at %s", p.Name, at.UTC().Format(time.TimeOnly))
		}
	}
	return ""
}

// deletion is when the deletion of a pod began whose program had not ended then.
func (e evidence) deletion(p *corev1.Pod, container string) (time.Time, bool) {
	at, ok := e.deleted[p.UID]
	ended := programEnd(p, container)
	return at, ok && (ended.IsZero() || !ended.Before(at))
}

// deletionOf is when the deletion of a pod began, by its state.
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

// programStatus is that of the program's container; nil where there is none yet.
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

// programEnd is when the program ended; zero where it has not.
func programEnd(p *corev1.Pod, container string) time.Time {
	if s := programStatus(p, container); s != nil && s.State.Terminated != nil {
		return s.State.Terminated.FinishedAt.Time
	}
	return time.Time{}
}

// podFailure tells how a pod has failed; false where it has not.
func podFailure(p *corev1.Pod, container string) (verdict, bool) {
	if s := programStatus(p, container); s != nil {
		if v, ok := containerFailure(p, s); ok {
			return v, true
		}
	}
	switch p.Status.Reason {
	case "DeadlineExceeded":
		return verdict{state: deadline, cause: p.Status.Message, code: -1}, true
	case "Evicted": // without DisruptionTarget: it used more than its own limits allow
		return verdict{state: failed, cause: "evicted: " + p.Status.Message, code: -1}, true
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == sidecarName {
				continue
			}
			if v, ok := containerFailure(p, &list[i]); ok {
				v.cause = fmt.Sprintf("container %s: %s", list[i].Name, v.cause)
				if v.state == retry { // only the program may ask for that
					v.state = failed
				}
				return v, true
			}
		}
	}
	return verdict{}, false
}

func containerFailure(p *corev1.Pod, s *corev1.ContainerStatus) (verdict, bool) {
	t := s.State.Terminated
	if t == nil || t.ExitCode == 0 {
		return verdict{}, false
	}
	v := verdict{state: failed, code: int(t.ExitCode), cause: fmt.Sprintf("exit code %d", t.ExitCode)}
	switch {
	case t.Reason == "OOMKilled":
		v.state, v.cause = outOfMemory, "killed for its memory (OOMKilled)"+memoryLimit(p, s.Name)
	case t.Reason == startError || t.Reason == "ContainerCannotRun":
		v.start, v.cause = true, "cannot run: "+t.Message
	case t.ExitCode == exitRetry:
		v.state, v.cause = retry, fmt.Sprintf("the program asked for a retry (exit code %d)", exitRetry)
	case p.Status.Reason == "DeadlineExceeded":
		v.state, v.cause = deadline, p.Status.Message
	case p.Status.Reason == "Evicted":
		v.cause = "evicted: " + p.Status.Message
	}
	return v, true
}

func memoryLimit(p *corev1.Pod, container string) string {
	for _, c := range p.Spec.Containers {
		if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && c.Name == container {
			return fmt.Sprintf(": its limit is %s", limit.String())
		}
	}
	return ""
}
