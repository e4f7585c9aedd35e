package kubejob

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// stages are when the pods of an attempt passed each stage. Kubernetes keeps times in whole seconds, so what the
// worker saw of the change makes them more exact.
type stages struct {
	told, exact messaging.Stages
}

// note takes what the cluster says of the pods now. A stage that it no longer tells stays as it was: a pod that has
// ended says that its network is gone.
func (s *stages) note(pods []*corev1.Pod, container string, now time.Time) {
	told := stagesOf(pods, container)
	for _, stage := range []struct{ told, before, exact *time.Time }{
		{&told.Created, &s.told.Created, &s.exact.Created}, {&told.Scheduled, &s.told.Scheduled, &s.exact.Scheduled},
		{&told.Prepared, &s.told.Prepared, &s.exact.Prepared}, {&told.Started, &s.told.Started, &s.exact.Started},
		{&told.Ended, &s.told.Ended, &s.exact.Ended},
	} {
		if !stage.told.IsZero() && !stage.told.Equal(*stage.before) {
			*stage.before, *stage.exact = *stage.told, within(*stage.told, now)
		}
	}
}

// within returns the time within a whole second that is nearest to when the worker saw it.
func within(second, seen time.Time) time.Time {
	seen = seen.Round(time.Millisecond)
	switch last := second.Add(time.Second - time.Millisecond); {
	case seen.Before(second):
		return second.UTC()
	case seen.After(last):
		return last.UTC()
	}
	return seen.UTC()
}

// stagesOf returns what pods say of their stages. Those before the program's start are of the pod whose program started
// first. The program has ended when that of each pod has that started.
func stagesOf(pods []*corev1.Pod, container string) (s messaging.Stages) {
	first := firstPod(pods, container)
	if first == nil {
		return s
	}
	for _, p := range pods {
		if s.Created.IsZero() || p.CreationTimestamp.Time.Before(s.Created) {
			s.Created = p.CreationTimestamp.Time
		}
	}
	for _, c := range first.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch at := c.LastTransitionTime.Time; {
		case c.Type == corev1.PodScheduled:
			s.Scheduled = at
		case (c.Type == corev1.PodReadyToStartContainers || c.Type == corev1.PodInitialized && len(first.Spec.InitContainers) > 0) &&
			at.After(s.Prepared):
			s.Prepared = at
		}
	}
	s.Started = programStart(first, container)
	for _, p := range pods {
		if programStart(p, container).IsZero() {
			continue
		}
		end := programEnd(p, container)
		if end.IsZero() {
			s.Ended = end
			break
		}
		if end.After(s.Ended) {
			s.Ended = end
		}
	}
	return s
}

// firstPod returns the pod whose program started first, or else the one that was made first; nil if there is none.
func firstPod(pods []*corev1.Pod, container string) (first *corev1.Pod) {
	before := func(a, b *corev1.Pod) bool {
		x, y := programStart(a, container), programStart(b, container)
		if x.IsZero() != y.IsZero() {
			return y.IsZero()
		}
		if !x.Equal(y) {
			return x.Before(y)
		}
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	for _, p := range pods {
		if first == nil || before(p, first) {
			first = p
		}
	}
	return first
}

// programStart returns when a pod's program first started; zero if it has not.
func programStart(p *corev1.Pod, container string) time.Time {
	s := programStatus(p, container)
	if s == nil {
		return time.Time{}
	}
	for _, state := range []corev1.ContainerState{s.LastTerminationState, s.State} {
		if t := state.Terminated; t != nil && t.StartedAt.Unix() > 0 { // one that could not start did so in 1970
			return t.StartedAt.Time
		}
		if state.Running != nil {
			return state.Running.StartedAt.Time
		}
	}
	return time.Time{}
}
