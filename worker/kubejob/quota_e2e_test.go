//go:build e2e

package kubejob

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// limit makes a quota of the namespace, and waits until it counts.
func (c *cluster) limit(name string, hard corev1.ResourceList) {
	c.t.Helper()
	quotas := c.kube.CoreV1().ResourceQuotas(c.o.Namespace)
	if _, err := quotas.Create(c.t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		q, err := quotas.Get(c.t.Context(), name, metav1.GetOptions{})
		if err == nil && len(q.Status.Hard) == len(hard) {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the quota %s does not count: %v", name, err)
		}
	}
}

// A study is not blocked by its own ended Jobs: the oldest make room for the next.
func TestEndedJobsMakeRoom(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.limit("jobs", corev1.ResourceList{"count/jobs.batch": resource.MustParse("2")})
	o := c.o
	o.Template = []byte(c.jobTemplate("--steps=1"))
	r, _ := c.runner(t, o)
	const trials = 5
	for n := 1; n <= trials; n++ {
		a := trial(n)
		e, _ := evaluateOnce(t.Context(), t, r, a)
		check(t, e, messaging.OutcomeCompleted, "", "")
		if err := r.MarkEnded(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= trials; n++ {
		if kept := c.job(trial(n)) != nil; kept != (n > trials-2) {
			t.Errorf("the Job of trial %d is kept: %v", n, kept)
		}
	}
}

// A pod that a quota can never admit fails at once, with the cluster's words.
func TestQuotasOnPods(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.limit("memory", corev1.ResourceList{"limits.memory": resource.MustParse("32Mi"), "requests.cpu": resource.MustParse("1")})
	o := c.o
	o.Template = []byte(c.jobTemplate())
	r, _ := c.runner(t, o)
	e, _ := evaluateOnce(t.Context(), t, r, trial(1))
	check(t, e, messaging.OutcomeFailed, messaging.ReasonStart, "limited: limits.memory=32Mi")

	o.Worker += "-unbounded"
	o.Template = []byte(strings.Replace(c.jobTemplate(), "limits: {memory: 64Mi}, ", "", 1))
	r, _ = c.runner(t, o)
	e, _ = evaluateOnce(t.Context(), t, r, trial(2))
	check(t, e, messaging.OutcomeFailed, messaging.ReasonStart, "must specify limits.memory")

	o.Worker = c.o.Worker + "-none"
	o.Template = []byte(strings.Replace(c.jobTemplate(), "{memory: 64Mi}", "{memory: 32Mi}", 1))
	r, _ = c.runner(t, o)
	c.limit("none", corev1.ResourceList{"count/pods": resource.MustParse("0")})
	e, _ = evaluateOnce(t.Context(), t, r, trial(3))
	check(t, e, messaging.OutcomeFailed, messaging.ReasonStart, "count/pods=0")
}
