package kubejob

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// What pods of a real cluster say in the end. A pod that has ended no longer says when its network was ready.
func TestStagesOfRecordedPods(t *testing.T) {
	t.Parallel()
	clock := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		at, err := time.Parse(time.DateTime, "2026-11-21 16:"+text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for name, want := range map[string][5]string{
		"completed-by-its-log": {"15:39", "15:39", "", "15:41", "15:41"},
		"out-of-memory":        {"15:43", "15:43", "", "15:44", "15:45"},
		"pod-deleted":          {"15:43", "15:43", "", "15:44", "15:46"},
		"no-such-program":      {"15:39", "15:39", "", "", ""}, // its container "started" in 1970
		"no-such-image":        {"18:10", "18:10", "18:11", "", ""},
		"no-such-node":         {"15:39", "", "", "", ""},
		"not-of-this-level":    {},
	} {
		got := stagesOf(recorded(t, name).pods, "")
		for _, at := range []*time.Time{&got.Created, &got.Scheduled, &got.Prepared, &got.Started, &got.Ended} {
			*at = at.UTC()
		}
		if diff := cmp.Diff(messaging.Stages{Created: clock(want[0]), Scheduled: clock(want[1]), Prepared: clock(want[2]),
			Started: clock(want[3]), Ended: clock(want[4])}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// podOf is a pod that was made, started and ended at these seconds; 0 for never.
func podOf(created, started, ended int64) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	p.CreationTimestamp = at(created)
	s := corev1.ContainerStatus{Name: "main"}
	switch {
	case ended > 0:
		s.State.Terminated = &corev1.ContainerStateTerminated{StartedAt: at(started), FinishedAt: at(ended)}
	case started > 0:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: at(started)}
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{s}
	return p
}

// The program of several pods runs from the first start to the last end.
func TestStagesOfSeveralPods(t *testing.T) {
	t.Parallel()
	again := podOf(1, 9, 12)
	again.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{StartedAt: at(3), FinishedAt: at(5)}
	for name, tt := range map[string]struct {
		pods           []*corev1.Pod
		started, ended int64 // 0 if that is not known
	}{
		"two":                  {pods: []*corev1.Pod{podOf(2, 6, 9), podOf(1, 4, 12)}, started: 4, ended: 12},
		"one runs":             {pods: []*corev1.Pod{podOf(2, 6, 9), podOf(1, 4, 0)}, started: 4},
		"one has not started":  {pods: []*corev1.Pod{podOf(2, 6, 9), podOf(1, 0, 0)}, started: 6, ended: 9},
		"none has started":     {pods: []*corev1.Pod{podOf(2, 0, 0), podOf(1, 0, 0)}},
		"one that was retried": {pods: []*corev1.Pod{again}, started: 3, ended: 12},
	} {
		want := messaging.Stages{Created: at(1).Time}
		if tt.started > 0 {
			want.Started = at(tt.started).Time
		}
		if tt.ended > 0 {
			want.Ended = at(tt.ended).Time
		}
		if diff := cmp.Diff(want, stagesOf(tt.pods, "")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		slices.Reverse(tt.pods)
		if diff := cmp.Diff(want, stagesOf(tt.pods, "main")); diff != "" {
			t.Errorf("%s, in the other order: %s", name, diff)
		}
	}
}

// The worker's view makes the cluster's whole seconds more exact, and a stage that the cluster forgets stays known.
func TestStagesAreExact(t *testing.T) {
	t.Parallel()
	var s stages
	moment := func(second int64, ms int) time.Time {
		return at(second).Add(time.Duration(ms) * time.Millisecond).UTC()
	}
	p := podOf(1, 0, 0)
	ready := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: at(3)}
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(1)}
	pods := []*corev1.Pod{p}
	s.note(pods, "", moment(1, 300))
	p.Status.Conditions = []corev1.PodCondition{scheduled}
	s.note(pods, "", moment(1, 400))
	p.Status.Conditions = append(p.Status.Conditions, ready)
	s.note(pods, "", moment(4, 200)) // seen later than within its second
	pods[0] = podOf(1, 6, 0)
	s.note(pods, "", moment(5, 900)) // by a clock that is late
	s.note(pods, "", moment(8, 0))
	pods[0] = podOf(1, 6, 8)
	s.note(pods, "", moment(8, 700))
	s.note(pods, "", moment(9, 0))
	if diff := cmp.Diff(messaging.Stages{Created: moment(1, 300), Scheduled: moment(1, 400), Prepared: moment(3, 999),
		Started: moment(6, 0), Ended: moment(8, 700)}, s.exact); diff != "" {
		t.Error(diff)
	}
}

// InitContainers are part of the preparation, and come after the pod's network.
func TestInitContainersArePreparation(t *testing.T) {
	t.Parallel()
	p := podOf(1, 9, 0)
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: at(7)},
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: at(3)},
	}
	if got := stagesOf([]*corev1.Pod{p}, "").Prepared; !got.Equal(at(3).Time) {
		t.Errorf("without initContainers the pod was prepared at %v, want second 3", got)
	}
	p.Spec.InitContainers = []corev1.Container{{Name: "fetch"}}
	if got := stagesOf([]*corev1.Pod{p}, "").Prepared; !got.Equal(at(7).Time) {
		t.Errorf("with initContainers the pod was prepared at %v, want second 7", got)
	}
}

// Only the first trial of a Job that evaluates several has waited for the pod.
func TestStagesOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &player{program: squares(func(context.Context, int, <-chan string, func(string)) (int, bool) {
			time.Sleep(time.Minute)
			return 0, false
		})}
		e := p.play(t)
		first, second := e.Evaluate(t.Context(), streamed(1)).Stages, e.Evaluate(t.Context(), streamed(2)).Stages
		if first == nil || first.Created.IsZero() || first.Started.IsZero() || first.Ended.IsZero() {
			t.Errorf("the stages of the first trial are %+v", first)
		}
		if second == nil || !second.Created.IsZero() || second.Ended.Sub(second.Started) != time.Minute {
			t.Errorf("the stages of the second trial are %+v, want a minute in the program alone", second)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		p.running.Wait()
	})
}
