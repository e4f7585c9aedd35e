package kubejob

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// An image that does not exist is waited for a little, since a build may be about to push it. One
// whose registry does not answer is waited for as long as a pod may take to start.
func TestHopelessImages(t *testing.T) {
	// The messages are the kubelet's, of containerd 2 and of registries that answer 404.
	const absent = `Back-off pulling image "train:2": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/train:2": failed to resolve reference "docker.io/library/train:2": docker.io/library/train:2: not found`
	const down = `Back-off pulling image "r/train:2": ErrImagePull: failed to resolve reference: dial tcp 10.0.0.1:443: connect: connection refused`
	for _, tt := range []struct {
		reason, message string
		after           time.Duration
		want            bool
	}{
		{"ImagePullBackOff", absent, time.Minute, false},
		{"ImagePullBackOff", absent, imagePatience, true},
		{"ErrImagePull", absent, imagePatience, true},
		{"ImagePullBackOff", down, time.Hour, false},
		{"InvalidImageName", `couldn't parse image name "A B"`, 0, true},
		{"CreateContainerConfigError", `secret "db" not found`, time.Hour, false},
	} {
		p := pod("a", -1, phase(corev1.PodPending), containerWaits(tt.reason, tt.message))
		p.CreationTimestamp = at(0)
		if got := isHopeless(p, at(0).Add(tt.after)); got != tt.want {
			t.Errorf("%s after %s: hopeless %v, want %v", tt.reason, tt.after, got, tt.want)
		}
	}
}

// What can never be admitted fails at once; what a quota has no room for now waits.
func TestUnmendable(t *testing.T) {
	// The messages are those of the Job controller's events, from Kubernetes 1.34.
	for text, want := range map[string]bool{
		`FailedCreate: Error creating: pods "a-x2k9" is forbidden: failed quota: team: must specify limits.memory for: train`:                                                                       true,
		`FailedCreate: Error creating: pods "a-x2k9" is forbidden: maximum memory usage per Container is 64Mi, but limit is 128Mi`:                                                                  true,
		`FailedCreate: Error creating: pods "a-x2k9" is forbidden: [maximum cpu usage per Pod is 1.  No limit is specified, x]`:                                                                     true,
		`FailedCreate: Error creating: pods "a-x2k9" is forbidden: minimum nvidia.com/gpu usage per Container is 1, but request is 0`:                                                               true,
		`FailedCreate: Error creating: pods "a-x2k9" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000`:                                               true,
		`FailedCreate: Error creating: pods "a-x2k9" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`:                                                     true,
		`FailedCreate: Error creating: Pod "a-x2k9" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`:                            true,
		`FailedCreate: Error creating: pods "a-x2k9" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=1`: true,
		`FailedCreate: Error creating: pods "a-x2k9" is forbidden: exceeded quota: team, requested: limits.memory=4Gi,pods=1, used: limits.memory=0,pods=0, limited: limits.memory=4000Mi,pods=10`:  true,
		`FailedCreate: Error creating: pods "a-x2k9" is forbidden: exceeded quota: team, requested: requests.cpu=500m, used: requests.cpu=2, limited: requests.cpu=2`:                               false,
		`jobs.batch "a" is forbidden: exceeded quota: team, requested: count/jobs.batch=1, used: count/jobs.batch=5, limited: count/jobs.batch=5`:                                                   false,
		`FailedCreate: Error creating: Internal error occurred: failed calling webhook "pods.example.com": the server is currently unable to handle the request`:                                    false,
		"": false,
	} {
		if got := unmendable(text); got != want {
			t.Errorf("%v, want %v: %s", got, want, text)
		}
	}
}

// The timeout counts from the first start that is seen, or, for a program that an earlier process
// of the worker has started, from its own start.
func TestDeadlineCountsFromTheProgram(t *testing.T) {
	a := &attempt{}
	a.task.Assignment = assignment()
	timeout := time.Duration(a.task.Assignment.Run.Timeout)
	if timeout <= 0 {
		t.Fatal("the assignment has no timeout")
	}
	waits := pod("a", -1, phase(corev1.PodPending), containerWaits("ContainerCreating", ""))
	runs := pod("a", -1)
	runs.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(0)}}
	late := at(0).Add(2 * timeout)
	if a.deadline([]*corev1.Pod{waits}, late) != nil {
		t.Error("a pod that waits has a deadline")
	}
	ended := func(c <-chan time.Time) bool {
		select {
		case <-c:
			return true
		case <-time.After(10 * time.Millisecond):
			return false
		}
	}
	if c := a.deadline([]*corev1.Pod{waits, runs}, late); c == nil || ended(c) {
		t.Error("the clock of a node decides about a program that has just been seen")
	}
	if a.resumed = true; !ended(a.deadline([]*corev1.Pod{runs}, late)) {
		t.Error("a restarted worker forgets when the program started")
	}
}
