//go:build e2e

package kubejob

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientretry "k8s.io/client-go/util/retry"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// TestEvictions has the cluster take pods away in each way that it has on a node in order. The kubelet measures
// volumes once a minute, so this takes two.
func TestEvictions(t *testing.T) {
	c := newCluster(t)
	long := []string{"--steps=3000", "--pause=100ms"}
	of := func(change ...string) string { return strings.NewReplacer(change...).Replace(c.jobTemplate(long...)) }
	// fills writes more into a volume than its limit allows.
	fills := func(flags ...string) string {
		return strings.NewReplacer(
			"      containers:", "      volumes: [{name: scratch, emptyDir: {sizeLimit: 4Mi}}]\n      containers:",
			"          command:", "          volumeMounts: [{name: scratch, mountPath: /scratch}]\n          command:").
			Replace(c.jobTemplate(slices.Concat(long, flags, []string{"--disk=/scratch"})...))
	}
	writes := func(flags ...string) string {
		return strings.Replace(c.jobTemplate(slices.Concat(long, flags, []string{"--disk=/tmp"})...),
			"limits: {", "limits: {ephemeral-storage: 4Mi, ", 1)
	}
	for i, tt := range []struct {
		name     string
		template string
		meddle   func(ctx context.Context, p *corev1.Pod)

		outcome messaging.Outcome
		reason  string
		message string
	}{
		{name: "over the limit of its emptyDir", template: fills("--told=143"), message: "Usage of EmptyDir volume"},
		{name: "over a limit and asks for a retry", template: fills("--told=75"), message: "Usage of EmptyDir volume"},
		{name: "over its ephemeral storage", template: writes("--told=143"), message: "exceeds the total limit of containers"},
		{name: "over a limit and ends well", template: writes(), message: "exceeds the total limit of containers"},
		{name: "deadline of the pod", template: of("      containers:", "      activeDeadlineSeconds: 3\n      containers:"),
			outcome: messaging.OutcomeTimeout, reason: messaging.ReasonTimeout, message: "longer"},
		{name: "pre-empted", template: of(), meddle: c.preempt,
			outcome: messaging.OutcomeHandedBack, reason: messaging.ReasonPreempted, message: "PreemptionByScheduler"},
		{name: "tainted node", meddle: c.taint,
			template: of("      containers:", "      tolerations: [{key: "+taintKey+
				", operator: Exists, effect: NoExecute, tolerationSeconds: 0}]\n      containers:"),
			outcome: messaging.OutcomeHandedBack, reason: messaging.ReasonPreempted, message: "DeletionByTaintManager"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name != "tainted node" { // which all other pods have to leave
				t.Parallel()
			} else if os.Getenv("FANTASIA_E2E_TAINT") == "" {
				t.Skip("FANTASIA_E2E_TAINT is not set, so no node is tainted")
			}
			if tt.outcome == "" { // over a limit
				tt.outcome, tt.reason = messaging.OutcomeFailed, messaging.ReasonExit
			}
			o := c.o
			o.Template, o.Worker = []byte(tt.template), fmt.Sprintf("w%d", i)
			r, _ := c.runner(t, o)
			a := trial(i + 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var meddling sync.WaitGroup
			if tt.meddle != nil {
				meddling.Go(func() {
					p, err := c.pod(ctx, a)
					if err == nil {
						tt.meddle(ctx, p)
					} else if ctx.Err() == nil {
						t.Error(err)
					}
				})
			}
			meddling.Go(func() { c.record(ctx, tt.name, a) })
			e, _ := evaluateOnce(ctx, t, r, a)
			cancel()
			meddling.Wait()
			check(t, e, tt.outcome, tt.reason, tt.message)
		})
	}
}

// preempt makes a pod of a higher priority that has to run on the node of p, and not beside it.
func (c *cluster) preempt(ctx context.Context, p *corev1.Pod) {
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: c.o.Namespace}, Value: 1000}
	if _, err := c.kube.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		c.t.Error(err)
		return
	}
	c.t.Cleanup(func() {
		if err := c.kube.SchedulingV1().PriorityClasses().Delete(context.Background(), class.Name, metav1.DeleteOptions{}); err != nil {
			c.t.Error(err)
		}
	})
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "first-", Namespace: p.Namespace}, Spec: *p.Spec.DeepCopy()}
	other.Spec.NodeName, other.Spec.PriorityClassName, other.Spec.Priority = "", class.Name, nil
	other.Spec.NodeSelector = map[string]string{corev1.LabelHostname: p.Spec.NodeName}
	other.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{LabelJob: p.Labels[LabelJob]}}}},
	}}
	if _, err := c.kube.CoreV1().Pods(p.Namespace).Create(ctx, other, metav1.CreateOptions{}); err != nil {
		c.t.Error(err)
	}
}

const taintKey = "fantasia.dev/e2e"

// taint has all pods leave the node of p, until ctx ends.
func (c *cluster) taint(ctx context.Context, p *corev1.Pod) {
	change := func(change func(n *corev1.Node)) {
		if err := clientretry.RetryOnConflict(clientretry.DefaultRetry, func() error {
			n, err := c.kube.CoreV1().Nodes().Get(context.Background(), p.Spec.NodeName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(n)
			_, err = c.kube.CoreV1().Nodes().Update(context.Background(), n, metav1.UpdateOptions{})
			return err
		}); err != nil {
			c.t.Error(err)
		}
	}
	change(func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taintKey, Effect: corev1.TaintEffectNoExecute})
	})
	<-ctx.Done()
	change(func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintKey })
	})
}

// record writes, where FANTASIA_E2E_RECORD names a directory, what the cluster says
// of an attempt until ctx ends: testdata/*.json are made so.
func (c *cluster) record(ctx context.Context, name string, a *messaging.Assignment) {
	dir := os.Getenv("FANTASIA_E2E_RECORD")
	if dir == "" {
		return
	}
	o := metav1.ListOptions{LabelSelector: LabelJob + "=" + JobName(a)}
	jobs, err := c.kube.BatchV1().Jobs(c.o.Namespace).Watch(context.Background(), o)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer jobs.Stop()
	pods, err := c.kube.CoreV1().Pods(c.o.Namespace).Watch(context.Background(), o)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer pods.Stop()
	var last recording
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, func() { close(late) }) })
	defer stop()
	for open := true; open; {
		select {
		case e := <-jobs.ResultChan():
			if j, ok := e.Object.(*batchv1.Job); ok && j.DeletionTimestamp == nil {
				j.ManagedFields, j.Annotations = nil, nil
				last.Job = j
			}
		case e := <-pods.ResultChan():
			p, ok := e.Object.(*corev1.Pod)
			waits := len(last.Pods) == 0 || last.Pods[0].Status.Phase == corev1.PodPending
			if !ok || p.DeletionTimestamp != nil && waits {
				continue // deleted since it has not started
			}
			if at, ok := deletionOf(p); ok && last.Deleted == nil {
				last.Deleted = &at
			}
			if e.Type != watch.Deleted {
				p.ManagedFields = nil
				last.Pods = []corev1.Pod{*p}
			}
		case <-late:
			open = false
		}
	}
	data, err := json.MarshalIndent(last, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".json"), data, 0o600)
	}
	if err != nil {
		c.t.Error(err)
	}
}
