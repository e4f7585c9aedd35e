package kubejob

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
)

// recording is a cluster's last report about an attempt.
type recording struct {
	Job  *batchv1.Job
	Pods []corev1.Pod
	// Deleted is the time when the deletion of the pod began.
	Deleted *time.Time
}

// recorded reads a recording of a real cluster: see e2e_test.go.
func recorded(t *testing.T, name string) evidence {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	e := evidence{deleted: map[types.UID]time.Time{}, now: time.Now()}
	for i := range r.Pods {
		p := &r.Pods[i]
		e.pods = append(e.pods, p)
		if r.Deleted != nil {
			e.deleted[p.UID] = *r.Deleted
		}
	}
	e.object = asObject(t, r.Job)
	return e
}

func asObject(t *testing.T, j *batchv1.Job) *unstructured.Unstructured {
	t.Helper()
	data, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	object.Object = map[string]any{}
	if err := json.Unmarshal(data, &object.Object); err != nil {
		t.Fatal(err)
	}
	return &object
}

func conditions(t *testing.T) (success, failure *jobpolicy.Condition) {
	t.Helper()
	s, f := conditionsOf(jobKind)
	var err error
	if success, err = jobpolicy.NewCondition(s); err != nil {
		t.Fatal(err)
	}
	if failure, err = jobpolicy.NewCondition(f); err != nil {
		t.Fatal(err)
	}
	return success, failure
}

// TestJudgeRecordings judges recordings of a cluster with Kubernetes 1.36.
func TestJudgeRecordings(t *testing.T) {
	success, failure := conditions(t)
	for name, want := range map[string]struct {
		state state
		cause string
		code  int
	}{
		"completed-by-its-log":         {succeeded, "", 0},
		"completed-by-the-report-file": {succeeded, "", 0},
		"exit-1":                       {failed, "exit code 1", 1},
		"exit-75":                      {retry, "75", 75},
		"out-of-memory":                {outOfMemory, "its limit is 64Mi", 137},
		"evicted":                      {disrupted, "EvictionByEvictionAPI", -1},
		"pod-deleted":                  {disrupted, "was deleted", -1},
		"pre-empted":                   {disrupted, "PreemptionByScheduler", -1},
		"tainted-node":                 {disrupted, "DeletionByTaintManager", -1},
		// The pod's own limits: neither what the program exits with when it is told to end, nor ContainerStatusUnknown counts.
		"over-the-limit-of-its-emptyDir":    {failed, "Usage of EmptyDir volume", 137},
		"over-a-limit-and-asks-for-a-retry": {failed, "Usage of EmptyDir volume", 75},
		"over-its-ephemeral-storage":        {failed, "exceeds the total limit of containers", 137},
		"over-a-limit-and-ends-well":        {succeeded, "", 0}, // the pod has no mark: TestStorageLimitsOfPodsThatSucceed
		"deadline-of-the-pod":               {deadline, "longer than the specified deadline", -1},
		"deadline-of-the-Job":               {deadline, "longer than specified deadline", -1},
		"no-such-program":                   {failed, "no such file or directory", 128},
		"no-such-image":                     {waiting, "ErrImagePull", -1},
		"no-such-node":                      {waiting, "Unschedulable", -1},
		"not-of-this-level":                 {waiting, "no pod", -1},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(recorded(t, name), success, failure, "")
			if v.state != want.state || !strings.Contains(v.cause, want.cause) || v.code != want.code {
				t.Errorf("judged %d, %q, code %d; want %d, …%s…, code %d", v.state, v.cause, v.code, want.state, want.cause, want.code)
			}
		})
	}
}

// pod returns a pod whose program has ended with a code, or runs if it is negative.
func pod(name string, code int32, change ...func(p *corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.UID, p.Spec.NodeName = name, types.UID(name), "node1"
	p.Spec.Containers = []corev1.Container{{Name: "main"}}
	s := corev1.ContainerStatus{Name: "main"}
	switch {
	case code < 0:
		p.Status.Phase = corev1.PodRunning
		s.State.Running = &corev1.ContainerStateRunning{}
	case code == 0:
		p.Status.Phase = corev1.PodSucceeded
		s.State.Terminated = &corev1.ContainerStateTerminated{FinishedAt: at(10)}
	default:
		p.Status.Phase = corev1.PodFailed
		s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", FinishedAt: at(10)}
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{s}
	for _, f := range change {
		f(p)
	}
	return p
}

func at(second int64) metav1.Time { return metav1.Unix(1_800_000_000+second, 0) }

// deletedAt is a pod's deletion with a grace of 5 s.
func deletedAt(second int64) func(p *corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(at(second+5)), new(int64(5))
	}
}

func disruptedAt(second int64, reason string) func(p *corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: at(second),
		})
	}
}

func terminated(reason string) func(p *corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Terminated.Reason = reason }
}

func crashing(p *corev1.Pod) {
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: "proxy", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
	}}
}

func containerWaits(reason, message string) func(p *corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
}

func initRuns(name string) func(p *corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(3)}},
		}}
	}
}

func phase(phase corev1.PodPhase) func(p *corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func status(reason, message string) func(p *corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = reason, message }
}

// TestJudge covers what one node cannot produce: several pods, lost nodes. The
// conditions and reasons are those of Kubernetes' documentation of pod disruption
// conditions, node-pressure eviction and node shutdown.
func TestJudge(t *testing.T) {
	success, failure := conditions(t)
	condition := func(kind batchv1.JobConditionType, reason, message string) *batchv1.Job {
		return &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{
			{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message}}}}
	}
	complete, active := condition(batchv1.JobComplete, "", ""), &batchv1.Job{}
	exceeded := condition(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	noContainers := func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }
	for _, tt := range []struct {
		name string
		job  *batchv1.Job
		pods []*corev1.Pod
		now  int64
		want state
	}{
		{"runs", active, []*corev1.Pod{pod("a", -1)}, 10, running},
		{"completed", complete, []*corev1.Pod{pod("a", 0)}, 10, succeeded},
		{"completed, its pod gone", complete, nil, 10, succeeded},
		{"failed, its pod gone", exceeded, nil, 10, failed},
		{"told to end, and ended well halfway", complete, []*corev1.Pod{pod("a", 0, deletedAt(5))}, 10, disrupted},
		{"deleted after its end", complete, []*corev1.Pod{pod("a", 0, deletedAt(20))}, 30, succeeded},
		{"evicted, and ended well halfway", complete, []*corev1.Pod{pod("a", 0, disruptedAt(5, "EvictionByEvictionAPI"))}, 10, disrupted},
		{"one evicted and replaced", complete, []*corev1.Pod{pod("a", 143, disruptedAt(5, "PreemptionByScheduler")), pod("b", 0)}, 10, succeeded},
		{"not needed once the leader had succeeded", complete, []*corev1.Pod{pod("a", 0), pod("b", 143, deletedAt(10))}, 12, succeeded},
		{"pre-empted", exceeded, []*corev1.Pod{pod("a", 143, disruptedAt(5, "PreemptionByScheduler"))}, 10, disrupted},
		{"pre-empted, its pod gone", condition(batchv1.JobFailed, "PodFailurePolicy",
			"Pod n/a has condition DisruptionTarget matching FailJob rule at index 0"), nil, 10, disrupted},
		{"failed by another rule", condition(batchv1.JobFailed, "PodFailurePolicy", "Container main for pod n/a failed with exit code 42 "+
			"matching FailJob rule at index 1"),
			[]*corev1.Pod{pod("a", 42)}, 10, failed},
		{"failed, then its node was drained", exceeded, []*corev1.Pod{pod("a", 1, disruptedAt(20, "EvictionByEvictionAPI"))}, 30, failed},
		{"one failed, and the Job deleted the other", exceeded, []*corev1.Pod{pod("a", 1), pod("b", 143, deletedAt(10))}, 12, failed},
		{"one was taken away, and the Job deleted the other", exceeded,
			[]*corev1.Pod{pod("a", 143, disruptedAt(5, "DeletionByTaintManager")), pod("b", 143, deletedAt(9))}, 12, disrupted},
		{"memory of the node was short", exceeded,
			[]*corev1.Pod{pod("a", 137, disruptedAt(9, "TerminationByKubelet"), status("Evicted", "The node was low on resource: memory."))}, 12,
			disrupted},
		{"over its own limit of storage", exceeded, []*corev1.Pod{pod("a", 137, status("Evicted", "Usage of EmptyDir volume exceeds the limit"))},
			12, failed},
		{"over its own limit of storage, and the kubelet forgot its containers", exceeded,
			[]*corev1.Pod{pod("a", 137, status("Evicted", "Usage of EmptyDir volume exceeds the limit"), terminated("ContainerStatusUnknown"))},
			12, failed},
		{"over its own limit of storage, before its containers were reported", exceeded,
			[]*corev1.Pod{pod("a", 137, status("Evicted", "Pod ephemeral local storage usage exceeds the total limit"), noContainers)}, 12, failed},
		{"over its own limit of storage, and asks for a retry when it is told to end", exceeded,
			[]*corev1.Pod{pod("a", 75, status("Evicted", "Usage of EmptyDir volume exceeds the limit"))}, 12, failed},
		{"over its deadline, and the kubelet forgot its containers", exceeded,
			[]*corev1.Pod{pod("a", 137, status("DeadlineExceeded", "Pod was active on the node longer"), terminated("ContainerStatusUnknown"))},
			12, deadline},
		{"memory of the node was short, and the kubelet forgot its containers", exceeded, []*corev1.Pod{pod("a", 137,
			disruptedAt(9, "TerminationByKubelet"), status("Evicted", "The node was low on resource: memory."),
			terminated("ContainerStatusUnknown"))}, 12, disrupted},
		{"out of memory", exceeded, []*corev1.Pod{pod("a", 137, terminated("OOMKilled"))}, 12, outOfMemory},
		{"the node did not take it", exceeded,
			[]*corev1.Pod{pod("a", 1, noContainers, status("UnexpectedAdmissionError", "Allocate failed due to no healthy devices"))}, 12,
			disrupted},
		{"the node has lost it", exceeded, []*corev1.Pod{pod("a", 137, terminated("ContainerStatusUnknown"))}, 12, disrupted},
		{"the node does not answer, within its grace", active, []*corev1.Pod{pod("a", -1, deletedAt(5))}, 20, running},
		{"the node does not answer", active, []*corev1.Pod{pod("a", -1, deletedAt(5))}, 60, disrupted},
		{"a sidecar crashes while the program runs", active, []*corev1.Pod{pod("a", -1, crashing)}, 60, running},
		{"a sidecar crashes before the program has started", active, []*corev1.Pod{pod("a", -1, crashing, phase(corev1.PodPending))}, 60,
			waiting},
		{"waits for a queue", &batchv1.Job{Spec: batchv1.JobSpec{Suspend: new(true)}}, nil, 60, queued},
		{"its image is pulled", active, []*corev1.Pod{pod("a", -1, phase(corev1.PodPending), containerWaits("ContainerCreating", ""))}, 60,
			waiting},
		{"an initContainer prepares its data", active,
			[]*corev1.Pod{pod("a", -1, phase(corev1.PodPending), containerWaits("PodInitializing", ""), initRuns("data"))}, 60, running},
		{"only the sidecar runs", active,
			[]*corev1.Pod{pod("a", -1, phase(corev1.PodPending), containerWaits("PodInitializing", ""), initRuns(sidecarName))}, 60, waiting},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := evidence{object: asObject(t, tt.job), pods: tt.pods, deleted: map[types.UID]time.Time{}, now: at(tt.now).Time}
			for _, p := range tt.pods {
				if since, ok := deletionOf(p); ok {
					e.deleted[p.UID] = since
				}
			}
			if v := judge(e, success, failure, ""); v.state != tt.want {
				t.Errorf("judged %d (%s), want %d", v.state, v.cause, tt.want)
			}
		})
	}
	if v := judge(evidence{gone: true}, success, failure, ""); v.state != disrupted {
		t.Errorf("a Job that somebody deleted is judged %d, want disrupted", v.state)
	}
	if v := judge(evidence{}, success, failure, ""); v.state != running {
		t.Errorf("a Job that is not seen yet is judged %d, want running", v.state)
	}
}

// TestConditions checks the default conditions against statuses from the kinds'
// documentation.
func TestConditions(t *testing.T) {
	list := func(kind string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": "Created", "status": "True"},
			map[string]any{"type": kind, "status": "True"}}}
	}
	for _, tt := range []struct {
		group, kind string
		status      map[string]any
		want        string
	}{
		{"batch", "Job", list("Complete"), "success"},
		{"batch", "Job", list("Failed"), "failure"},
		{"batch", "Job", list("FailureTarget"), ""},
		{"batch", "Job", nil, ""},
		{"kubeflow.org", "PyTorchJob", list("Succeeded"), "success"},
		{"kubeflow.org", "PyTorchJob", list("Running"), ""},
		{"kubeflow.org", "PyTorchJob", list("Failed"), "failure"},
		{"jobset.x-k8s.io", "JobSet", list("Completed"), "success"},
		{"trainer.kubeflow.org", "TrainJob", list("Complete"), "success"},
		{"ray.io", "RayJob", map[string]any{"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}, "success"},
		{"ray.io", "RayJob", map[string]any{"jobStatus": "RUNNING", "jobDeploymentStatus": "Running"}, ""},
		{"ray.io", "RayJob", map[string]any{"jobStatus": "FAILED"}, "failure"},
		{"ray.io", "RayJob", map[string]any{"jobDeploymentStatus": "Failed"}, "failure"},
		{"", "Pod", map[string]any{"phase": "Succeeded"}, "success"},
		{"", "Pod", map[string]any{"phase": "Pending"}, ""},
		{"", "Pod", map[string]any{"phase": "Failed"}, "failure"},
	} {
		s, f := conditionsOf(schema.GroupKind{Group: tt.group, Kind: tt.kind})
		got := ""
		for name, text := range map[string]string{"success": s, "failure": f} {
			c, err := jobpolicy.NewCondition(text)
			if err != nil {
				t.Fatal(err)
			}
			object := map[string]any{}
			if tt.status != nil {
				object["status"] = tt.status
			}
			if c.Holds(object) {
				got += name
			}
		}
		if got != tt.want {
			t.Errorf("%s with %v is a %q, want %q", tt.kind, tt.status, got, tt.want)
		}
	}
	for _, text := range []string{"status.", "1 + 1", "nothing == 1"} {
		if _, err := jobpolicy.NewCondition(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the condition %q is refused with %v", text, err)
		}
	}
}

// A container can end well although one of its processes was killed for memory. The trial
// completes with a warning, or fails if the worker is told so.
func TestMemoryKillsOfProcesses(t *testing.T) {
	limited := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	}
	for _, c := range []struct {
		reason  string
		fail    bool
		outcome messaging.Outcome
		warns   bool
	}{
		{"Completed", true, messaging.OutcomeCompleted, false},
		{"OOMKilled", false, messaging.OutcomeCompleted, true},
		{"OOMKilled", true, messaging.OutcomeFailed, true},
	} {
		tr := newTestTranscript(t, `err=(?P<error>\S+)`, nil)
		tr.line([]byte("err=0.5"))
		r := &Runner{options: Options{FailMemoryKills: c.fail}}
		a := &attempt{plan: &plan{site: &site{Runner: r}}, t: tr, logs: &followers{}}
		e := tr.conclude(a.ending(t.Context(), verdict{state: succeeded}, []*corev1.Pod{pod("a", 0, terminated(c.reason), limited)}))
		warns := e.Failure != nil && e.Failure.Reason == messaging.ReasonMemory &&
			strings.Contains(e.Failure.Message, "its limit is 64Mi, but the container ended with exit code 0")
		if e.Outcome != c.outcome || warns != c.warns || (len(e.Values) == 1) != (c.outcome == messaging.OutcomeCompleted) {
			t.Errorf("%s, fail %v: %+v (%+v), want %s with a warning: %v", c.reason, c.fail, e, e.Failure, c.outcome, c.warns)
		}
	}
}
