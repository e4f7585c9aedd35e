//go:build e2e

package kubejob

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
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

// Ended Jobs of other studies make room, too: the oldest first, failed ones last, and those only when the leader has
// stored why they failed.
func TestEndedJobsOfOtherStudiesMakeRoom(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.limit("jobs", corev1.ResourceList{"count/jobs.batch": resource.MustParse("4")})
	o := c.o
	o.Template = []byte(c.jobTemplate("--steps=1"))
	well, _ := c.runner(t, o)
	o.Template = []byte(c.jobTemplate("--steps=1", "--exit=3"))
	ill, _ := c.runner(t, o)
	of := func(n int) *messaging.Assignment {
		a := trial(n)
		a.Study, a.StudyName = fmt.Sprintf("%s%d", a.Study[:len(a.Study)-1], n), fmt.Sprintf("study-%d", n)
		return a
	}
	end := func(r *Runner, n int, stored bool) {
		t.Helper()
		a := of(n)
		want, reason := messaging.OutcomeCompleted, ""
		if r == ill {
			want, reason = messaging.OutcomeFailed, messaging.ReasonExit
		}
		e, _ := evaluateOnce(t.Context(), t, r, a)
		check(t, e, want, reason, "")
		if stored {
			if err := r.MarkStored(t.Context(), a.AttemptID); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.MarkEnded(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // Jobs have times of whole seconds
	}
	left := func(want ...int) {
		t.Helper()
		for n := 1; n <= 6; n++ {
			if kept := c.job(of(n)) != nil; kept != slices.Contains(want, n) {
				t.Errorf("the Job of study %d is kept: %v, want those of %v", n, kept, want)
			}
		}
	}
	end(ill, 1, true)
	end(ill, 2, false) // the worker has not delivered its result
	end(well, 3, true)
	end(well, 4, true)
	end(well, 5, true)
	left(1, 2, 4, 5)          // not the failed ones, although they are older
	for n := 4; n <= 5; n++ { // somebody deletes the others
		if err := c.kube.BatchV1().Jobs(c.o.Namespace).Delete(t.Context(), JobName(of(n)), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.fill(2)
	end(well, 6, true)
	left(2, 6)
}

// A pod that a LimitRange can never admit fails at once, too.
func TestLimitRange(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	most := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
	if _, err := c.kube.CoreV1().LimitRanges(c.o.Namespace).Create(t.Context(), &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "most"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: most}}}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.o.Template, c.o.StartTimeout = []byte(c.jobTemplate()), 10*time.Minute
	r, _ := c.runner(t, c.o)
	began := time.Now()
	e, _ := evaluateOnce(t.Context(), t, r, trial(1))
	check(t, e, messaging.OutcomeFailed, messaging.ReasonStart, "maximum memory usage per Container is 32Mi, but limit is 64Mi")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it failed after %v, want at once", took)
	}
}

// fill makes Jobs of somebody else, which are never deleted.
func (c *cluster) fill(n int) {
	c.t.Helper()
	for i := range n {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("other-%d", i)}, Spec: batchv1.JobSpec{Suspend: new(true),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "main", Image: "localhost/none"}}}}}}
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) { // a quota counts late what was deleted
			_, err := c.kube.BatchV1().Jobs(c.o.Namespace).Create(c.t.Context(), j, metav1.CreateOptions{})
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				c.t.Fatal(err)
			}
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
