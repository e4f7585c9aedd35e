package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// The reasons of events besides those of conditions.
const (
	EventRejected      = "Rejected"
	EventStarted       = "Started"
	EventContinued     = "Continued"
	EventLeaderChanged = "LeaderChanged"
)

// maxEvent is the largest size of an event's message in bytes.
const maxEvent = 1000

// event is something that happened to a resource. It is a warning if the user should
// do something about it.
type event struct {
	warning         bool
	reason, message string
}

// events returns what happened to a resource whose status becomes another.
func (r *Resource) events(next *Status) (all []event) {
	happened := func(warning bool, reason, message string) {
		all = append(all, event{warning, reason, message})
	}
	was, is := meta.FindStatusCondition(r.Status.Conditions, ConditionAccepted), meta.FindStatusCondition(next.Conditions, ConditionAccepted)
	switch {
	case is == nil:
	case is.Status == metav1.ConditionTrue:
		if was == nil || was.Status != is.Status || was.ObservedGeneration != is.ObservedGeneration {
			happened(false, ReasonAccepted, is.Message)
		}
	case was == nil || was.Reason != is.Reason || was.Message != is.Message:
		if is.Reason != ReasonDeleted {
			happened(true, EventRejected, is.Reason+": "+is.Message)
		}
	}
	begins := next.ID != "" && next.ID != r.Status.ID
	if begins {
		happened(false, EventStarted, fmt.Sprintf("study %s has started, with the id %s", next.Study, next.ID))
	}
	if c := meta.FindStatusCondition(next.Conditions, ConditionProgressing); c != nil &&
		(slices.Contains([]string{ReasonNoWorkers, ReasonPoolBusy, ReasonTrialsWait}, c.Reason)) {
		if before := meta.FindStatusCondition(r.Status.Conditions, ConditionProgressing); before == nil || before.Reason != c.Reason {
			happened(true, c.Reason, c.Message)
		}
	}
	if next.State == r.Status.State && !begins {
		return all
	}
	reason := next.Reason
	switch next.State {
	case study.Running:
		if !begins && r.Status.State.Terminal() && r.Status.State != StateUnknown {
			happened(false, EventContinued, "the study continues after it had ended")
		}
	case study.Completed:
		happened(false, ReasonCompleted, cmp.Or(reason, "the study has completed"))
	case study.Stopped:
		happened(false, ReasonStopped, cmp.Or(reason, "the study was stopped"))
	case study.Failed:
		happened(true, ReasonFailed, cmp.Or(reason, "the study has failed"))
	case StateDeleted:
		happened(true, ReasonDeleted, reason)
	}
	return all
}

// record creates events of a resource. They only tell people, so one that cannot be
// created is logged.
func (t *term) record(ctx context.Context, r *Resource, all []event) {
	for i, e := range all {
		now := time.Now().UTC()
		if _, err := t.Client.Resource(eventsType).Namespace(r.Namespace).Create(ctx, t.object(r, e, now.Add(time.Duration(i))),
			metav1.CreateOptions{FieldManager: manager}); err != nil {
			t.Logger.Warn("cannot create an event", telemetry.LogStudy, r.StudyName(), telemetry.LogReason, e.reason, telemetry.LogError, err)
		}
	}
}

// eventsType is the resource type of events.
var eventsType = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// object returns an event as a resource of Kubernetes.
func (t *term) object(r *Resource, e event, now time.Time) *unstructured.Unstructured {
	kind := "Normal"
	if e.warning {
		kind = "Warning"
	}
	at := now.Format(time.RFC3339)
	if len(e.message) > maxEvent {
		e.message = strings.ToValidUTF8(e.message[:maxEvent], "") + "…"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event", "type": kind, "reason": e.reason, "message": e.message,
		"metadata": map[string]any{"namespace": r.Namespace, "name": fmt.Sprintf("%s.%x", r.Name, now.UnixNano())},
		"involvedObject": map[string]any{
			"apiVersion": study.APIVersion, "kind": study.Kind, "namespace": r.Namespace, "name": r.Name, "uid": string(r.UID),
			"resourceVersion": r.Version,
		},
		"source":         map[string]any{"component": manager, "host": t.Replica},
		"firstTimestamp": at, "lastTimestamp": at, "count": int64(1),
		"reportingComponent": manager, "reportingInstance": t.Replica,
	}}
}

// meet reports whether this replica sees the resource for the first time, and records an event if its study
// was running before this replica led.
func (t *term) meet(ctx context.Context, r *Resource, running bool) (first bool) {
	t.mu.Lock()
	id := r.ID()
	first = !t.met[id]
	t.met[id] = true
	t.mu.Unlock()
	if first && running && r.Status.ID == id {
		t.record(ctx, r, []event{{reason: EventLeaderChanged, message: "coordinator " + t.Replica + " leads the study now"}})
	}
	return first
}
