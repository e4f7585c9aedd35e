//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/worker/kubejob"
)

// checkpointsClaim is the claim that all programs of the test mount for their checkpoints.
const checkpointsClaim = "checkpoints"

// promotedStudy is a study with the levels 1, 3 and 9.
const promotedStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: %s, direction: minimize}
  parameters: [%s, {name: epochs, type: fidelity, min: 1, max: 9}]
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: 24}
  parallelism: 4
  pool: %s
  trial: {command: [unused], timeout: 5m, grace: 20s}
`

// promotedJob is the template of Jobs that see only the directory of their own configuration, as
// docs/operate/kubejob.md says.
const promotedJob = `
        apiVersion: batch/v1
        kind: Job
        spec:
          template:
            spec:
              securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
              containers:
                - name: main
                  image: %se2e:%s
                  command: [/usr/local/bin/actor]
                  args: ["--epochs=${epochs}", --pause=2s]
                  env: [{name: FANTASIA_CHECKPOINT_DIR, value: /checkpoints}]
                  resources: {requests: {cpu: 20m, memory: 32Mi}}
                  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true}
                  volumeMounts: [{name: checkpoints, mountPath: /checkpoints, subPath: "${FANTASIA_CHECKPOINT_KEY}"}]
              volumes: [{name: checkpoints, persistentVolumeClaim: {claimName: checkpoints}}]
`

// TestPromotion promotes trials of Jobs and of loops beside a sidecar, whose pods share a
// volume: each promoted trial begins with the epoch after the last one of the trial that it
// continues, in whichever pod, also after a pod was evicted in the middle. And a pod whose trial
// is stopped early evaluates its next one.
func TestPromotion(t *testing.T) {
	inTurn(t)
	c := newCluster(t)
	// ReadWriteOnce, since all pods are on one node there.
	_, err := c.kube.CoreV1().PersistentVolumeClaims(c.namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: checkpointsClaim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Mi")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.chart("install", fmt.Sprintf(`
image: {tag: %q}
nats: {bundled: {accounts: true, persistence: {enabled: false}}}
etcd: {bundled: {persistence: {enabled: false}}}
coordinator: {replicas: 1, resources: {requests: {cpu: 50m, memory: 64Mi}}}
poolDefaults: {allowStudyCommands: true, resources: {requests: {cpu: 50m, memory: 64Mi}}}
pools:
  default: {replicas: 0}
  loops: {replicas: 0}
  jobs:
    slots: 4
    kubejob:
      template: |
%s`, c.tag, strings.TrimPrefix(fmt.Sprintf(promotedJob, repository, c.tag), "\n")))
	t.Run("jobs", func(t *testing.T) { c.in(t).testPromotedJobs() })
	t.Run("sidecar", func(t *testing.T) { c.in(t).testPromotedLoops() })
	t.Run("stopped", func(t *testing.T) { c.in(t).testStoppedLoops() })
}

func (c *cluster) testPromotedJobs() {
	const name = "jobs"
	c.create(fmt.Sprintf(promotedStudy, name, "error", "{name: x, type: float, min: 0, max: 1}", "jobs"))
	// A program may end before the eviction reaches its pod, also where an epoch takes seconds: a
	// busy node takes as long to run a pod and to stop it. So pods are evicted until an attempt was
	// handed back.
	evicted := map[int32]bool{}
	c.await(3*time.Minute, func(ctx context.Context) error {
		for _, t := range c.trials(name) {
			if slices.ContainsFunc(t.GetAttempts(), func(a *fantasiav1.Attempt) bool { return a.GetState() == handedBack }) {
				return nil
			}
			if evicted[t.GetNumber()] || t.GetPredecessor() == 0 || t.GetState() != fantasiav1.TrialState_TRIAL_STATE_RUNNING {
				continue
			}
			pods, err := c.kube.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{
				LabelSelector: fmt.Sprintf("%s=%s,%s=%d", kubejob.LabelStudy, name, kubejob.LabelTrial, t.GetNumber()),
				FieldSelector: "status.phase=Running",
			})
			if err != nil {
				return err
			}
			if len(pods.Items) == 0 {
				continue
			}
			if err := c.evict(ctx, pods.Items[0].Name); err != nil {
				return err
			}
			evicted[t.GetNumber()] = true
			break
		}
		return fmt.Errorf("no attempt was handed back after the pods of %d promoted trials were evicted", len(evicted))
	})
	c.completed(5*time.Minute, name)
	began := map[attemptKey]int32{}
	for _, t := range c.trials(name) {
		k := attemptKey{t.GetNumber(), int32(len(t.GetAttempts()))}
		began[k] = int32(t.GetMetrics()["began"])
		x := t.GetParameters().GetFields()["x"].GetNumberValue()
		if want := x*x + 1/float64(epochsOf(t)); t.Value == nil || t.GetValue() != want {
			c.t.Errorf("trial %d has the value %v, want %v: that of epoch %d", t.GetNumber(), t.Value, want, epochsOf(t))
		}
	}
	if back := c.promoted(name, began); back == 0 {
		c.t.Error("no attempt was handed back, want the one of the evicted pod")
	}
}

func (c *cluster) testPromotedLoops() {
	const name = "loops"
	l := &loops{cluster: c, logged: map[string][]evaluation{}}
	d := c.sample("sidecar.yaml")
	pod := &d.Spec.Template.Spec
	pod.InitContainers[0].Args = append(pod.InitContainers[0].Args, "--checkpoints=/checkpoints")
	training := &pod.Containers[0]
	training.Args = []string{"-slow", "250ms"}
	training.VolumeMounts = append(training.VolumeMounts, corev1.VolumeMount{Name: checkpointsClaim, MountPath: "/checkpoints"})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: checkpointsClaim, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: checkpointsClaim},
	}})
	c.apply(d)
	ctx, cancel := context.WithCancel(c.t.Context())
	defer l.remove()
	defer l.following.Wait()
	defer cancel()
	l.following.Go(func() { l.follow(ctx) })
	c.create(fmt.Sprintf(promotedStudy, name, "loss", "{name: learning_rate, type: float, min: 1e-3, max: 1, scale: log}, {name: "+
		"weight_decay, type: float, min: 1e-7, max: 1e-1, scale: log}", "loops"))
	c.ended(5*time.Minute, name, 8)
	evicted, _ := l.busy()
	if err := c.evict(c.t.Context(), evicted); err != nil {
		c.t.Fatal(err)
	}
	c.completed(5*time.Minute, name)
	began, at := map[attemptKey]int32{}, map[int32]string{}
	c.await(10*time.Second, func(context.Context) error { // the last lines of the logs may take a while
		l.mu.Lock()
		defer l.mu.Unlock()
		ended := map[int32]bool{}
		for pod, events := range l.logged {
			for _, e := range events {
				if at[e.Trial] = pod; e.Ended {
					ended[e.Trial] = true
				} else {
					began[attemptKey{e.Trial, e.Attempt}] = e.Epoch
				}
			}
		}
		if trials := c.trials(name); len(ended) < len(trials) {
			return fmt.Errorf("the loops have logged the ends of %d trials of %d", len(ended), len(trials))
		}
		return nil
	})
	c.promoted(name, began)
	moved := 0
	for _, t := range c.trials(name) {
		if p := t.GetPredecessor(); p > 0 && at[p] != at[t.GetNumber()] {
			moved++
		}
	}
	if moved == 0 {
		c.t.Error("no promoted trial was run by another pod than the one that it continues")
	}
	c.t.Logf("%d promoted trials went on in another pod", moved)
}

// stoppedStudy is a study of which half of the trials are stopped after a few epochs.
const stoppedStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: loss, direction: minimize}
  parameters:
    - {name: learning_rate, type: float, min: 1e-3, max: 1, scale: log}
    - {name: weight_decay, type: float, min: 1e-7, max: 1e-1, scale: log}
  algorithm: {name: random, seed: 1}
  earlyStopping: {name: asha, settings: {minSteps: 2, reduction: 2}}
  budget: {maxTrials: 20}
  parallelism: 4
  pool: loops
  trial: {command: [unused], timeout: 5m, grace: 20s}
`

// testStoppedLoops stops trials of loops early. The loop goes on in its pod: nothing restarts,
// and the pod evaluates its next trial after the stopped one.
func (c *cluster) testStoppedLoops() {
	const name = "stopped"
	l := &loops{cluster: c}
	d := c.sample("sidecar.yaml")
	d.Spec.Template.Spec.Containers[0].Args = []string{"-slow", "250ms"}
	c.apply(d)
	defer l.remove()
	c.create(fmt.Sprintf(stoppedStudy, name))
	c.completed(5*time.Minute, name)
	pods, err := l.pods(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, p := range pods {
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if s.RestartCount != 0 {
				c.t.Errorf("container %s of %s was restarted %d times", s.Name, p.Name, s.RestartCount)
			}
		}
	}
	trials, stopped := c.trials(name), 0
	begins := map[string]time.Time{} // the last trial of each pod
	for _, t := range trials {
		for _, a := range t.GetAttempts() {
			if begun := a.GetStartTime().AsTime(); begun.After(begins[a.GetWorker()]) {
				begins[a.GetWorker()] = begun
			}
		}
	}
	for _, t := range trials {
		if t.GetState() != fantasiav1.TrialState_TRIAL_STATE_PRUNED {
			continue
		}
		stopped++
		last := t.GetAttempts()[len(t.GetAttempts())-1]
		if t.Value == nil {
			c.t.Errorf("trial %d was stopped and has no value", t.GetNumber())
		}
		if int(t.GetNumber()) <= len(trials)/2 && !begins[last.GetWorker()].After(last.GetEndTime().AsTime()) {
			c.t.Errorf("pod %s evaluated nothing after trial %d, which was stopped", last.GetWorker(), t.GetNumber())
		}
	}
	if stopped < 4 || len(begins) != len(pods) {
		c.t.Errorf("%d of %d trials were stopped, in %d of %d pods; want 4 at least, and all pods", stopped, len(trials), len(begins), len(pods))
	}
	c.t.Logf("%d of %d trials were stopped in %d pods", stopped, len(trials), len(pods))
}

// epochsOf is the level of a trial of promotedStudy.
func epochsOf(t *fantasiav1.Trial) int32 {
	return int32(t.GetParameters().GetFields()["epochs"].GetNumberValue())
}

// promoted checks the trials of promotedStudy, by the epochs with which attempts began: none for
// a new configuration, and for a promoted trial those of the trial that it continues, or what an
// attempt that was handed back had reached. It returns how many of these there were.
func (c *cluster) promoted(name string, began map[attemptKey]int32) (back int) {
	c.t.Helper()
	trials := c.trials(name)
	if len(trials) != 24 {
		c.t.Fatalf("%s has %d trials, want 24", name, len(trials))
	}
	continued, promotions, top := map[int32]bool{}, 0, int32(0)
	for _, t := range trials {
		top = max(top, t.GetRung())
		before := int32(0)
		if p := t.GetPredecessor(); p > 0 {
			promotions++
			from := trials[p-1]
			before = epochsOf(from)
			if continued[p] || from.GetRung()+1 != t.GetRung() || from.GetState() != fantasiav1.TrialState_TRIAL_STATE_COMPLETED {
				c.t.Errorf("trial %d at level %d continues trial %d, %v at level %d", t.GetNumber(), t.GetRung(), p, from.GetState(), from.GetRung())
			}
			continued[p] = true
		}
		if t.GetState() != fantasiav1.TrialState_TRIAL_STATE_COMPLETED || epochsOf(t) != []int32{1, 3, 9}[t.GetRung()-1] {
			c.t.Errorf("trial %d is %v with %d epochs at level %d", t.GetNumber(), t.GetState(), epochsOf(t), t.GetRung())
		}
		for i, a := range t.GetAttempts() {
			if last := i == len(t.GetAttempts())-1; !last && a.GetState() == handedBack {
				back++
			}
			first, known := began[attemptKey{t.GetNumber(), a.GetNumber()}]
			if known && (first < before || i == 0 && first != before || first > epochsOf(t)) {
				c.t.Errorf("attempt %d of trial %d, of %d epochs, began after epoch %d, want %d", a.GetNumber(), t.GetNumber(), epochsOf(t), first,
					before)
			}
		}
	}
	if promotions < 4 || top != 3 {
		c.t.Errorf("%d trials were promoted, to level %d; want 4 at least, and 3", promotions, top)
	}
	c.t.Logf("%s: %d of 24 trials were promoted; %d attempts were handed back", name, promotions, back)
	return back
}
