//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	succeeded  = fantasiav1.AttemptState_ATTEMPT_STATE_SUCCEEDED
	lost       = fantasiav1.AttemptState_ATTEMPT_STATE_LOST
	handedBack = fantasiav1.AttemptState_ATTEMPT_STATE_HANDED_BACK
)

// TestDisruptions removes pods from a working release.
func TestDisruptions(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.startWitness()
	c.play([]part{
		{"install", (*cluster).testInstall},
		{"jobs", (*cluster).testJobs},
		{"kill the leader", (*cluster).testKillLeader},
		{"delete workers", (*cluster).testDeleteWorkers},
		{"drain", (*cluster).testDrain},
	})
}

// delete deletes a pod, with its own grace period or at once.
func (c *cluster) delete(pod string, atOnce bool) {
	c.t.Helper()
	options := metav1.DeleteOptions{}
	if atOnce {
		options.GracePeriodSeconds = pointer(int64(0))
	}
	if err := c.kube.CoreV1().Pods(c.namespace).Delete(c.t.Context(), pod, options); err != nil {
		c.t.Fatal(err)
	}
}

// podOf returns the pod of a worker from its name, which may start with its pool's.
func podOf(worker string) string { return worker[strings.Index(worker, ".")+1:] }

// busy waits for a pod that has just started an evaluation of a study. Where one takes ten seconds,
// most of it is still to come, also on a busy node, whose news of it are seconds old.
func (c *cluster) busy(study string, but ...string) string {
	c.t.Helper()
	var pod string
	c.await(time.Minute, func(context.Context) error {
		ended := map[attemptKey]bool{}
		all := c.evaluations(study)
		for _, e := range all {
			ended[attemptKey{e.Trial, e.Attempt}] = ended[attemptKey{e.Trial, e.Attempt}] || e.Ended
		}
		for _, e := range all {
			if pod = e.Host; !ended[attemptKey{e.Trial, e.Attempt}] && time.Since(e.Time) < 4*time.Second && !slices.Contains(but, pod) {
				return nil
			}
		}
		return errors.New("no evaluation has just begun")
	})
	return pod
}

// testKillLeader kills the leader's pod in the middle of a study: the workers continue,
// and no attempt is lost.
func (c *cluster) testKillLeader() {
	c.create(studyFile("killed", "default", 16, 4, 2))
	c.ended(2*time.Minute, "killed", 2)
	old := c.leader("")
	began := time.Now()
	c.delete(old, true)
	now := c.leader(old)
	c.t.Logf("%s leads instead of %s after %.1fs", now, old, time.Since(began).Seconds())
	c.await(15*time.Second, func(ctx context.Context) error {
		lease, err := c.kube.CoordinationV1().Leases(c.namespace).Get(ctx, "fantasia", metav1.GetOptions{})
		if err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != now) {
			err = fmt.Errorf("the Lease names another leader than %s: %v", now, lease.Spec)
		}
		return err
	})
	c.completed(5*time.Minute, "killed")
	if ways := c.compare("killed", 16, c.evaluations("killed")); len(ways) != 1 {
		c.t.Errorf("the attempts ended as %v, want all to succeed: workers outlive a leader", ways)
	}
	c.settled(2*time.Minute, "coordinator", 3, c.tag)
}

// testDeleteWorkers deletes a worker's pod, whose trials are handed back, and another
// one at once, whose trials may be lost; all trials run elsewhere.
func (c *cluster) testDeleteWorkers() {
	c.create(studyFile("workers", "default", 16, 4, 10))
	c.ended(2*time.Minute, "workers", 1)
	first := c.busy("workers")
	c.delete(first, false)
	second := c.busy("workers", first)
	c.delete(second, true)
	c.completed(8*time.Minute, "workers")
	c.compare("workers", 16, c.evaluations("workers"))
	counts := map[string]int{}
	for _, t := range c.trials("workers") {
		for _, a := range t.GetAttempts() {
			counts[podOf(a.GetWorker())+" "+a.GetState().String()]++
			if a.GetState() == lost && podOf(a.GetWorker()) != second {
				c.t.Errorf("trial %d: attempt %d was lost by %s, which was not killed", t.GetNumber(), a.GetNumber(), a.GetWorker())
			}
		}
	}
	if counts[first+" "+handedBack.String()] == 0 {
		c.t.Errorf("the attempts ended as %v; want some handed back by %s", counts, first)
	}
	c.settled(2*time.Minute, "worker", 2, c.tag)
}

// evict requests a pod's eviction, as a drain does.
func (c *cluster) evict(ctx context.Context, pod string) error {
	return c.kube.PolicyV1().Evictions(c.namespace).Evict(ctx,
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: c.namespace}})
}

func (c *cluster) cordon(node string, on bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := c.kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, on),
		metav1.PatchOptions{})
	return err
}

// testDrain drains the release's pods from a node with workers: they are evicted, their
// trials are handed back, and only as many coordinators leave as the disruption budget
// allows. The node becomes schedulable again before the end.
func (c *cluster) testDrain() {
	c.create(studyFile("drained", "default", 16, 4, 10))
	c.ended(2*time.Minute, "drained", 1)
	c.busy("drained")
	workers, errWorkers := c.pods(c.t.Context(), "worker")
	coordinators, errCoordinators := c.pods(c.t.Context(), "coordinator")
	if err := errors.Join(errWorkers, errCoordinators); err != nil {
		c.t.Fatal(err)
	}
	node := workers[0].Spec.NodeName
	if err := c.cordon(node, true); err != nil {
		c.t.Fatal(err)
	}
	defer func() {
		if err := c.cordon(node, false); err != nil {
			c.t.Errorf("the node %s is still cordoned: %v", node, err)
		}
	}()
	for _, p := range workers {
		if p.Spec.NodeName != node {
			continue
		}
		if err := c.evict(c.t.Context(), p.Name); err != nil {
			c.t.Errorf("evict %s: %v", p.Name, err)
		}
	}
	evicted, refused := 0, 0
	for _, p := range coordinators {
		switch err := c.evict(c.t.Context(), p.Name); {
		case err == nil:
			evicted++
		case apierrors.IsTooManyRequests(err):
			refused++
		default:
			c.t.Errorf("evict %s: %v", p.Name, err)
		}
	}
	if evicted != 1 || refused != 2 {
		c.t.Errorf("%d coordinators were evicted and %d protected, want 1 and 2", evicted, refused)
	}
	c.await(time.Minute, func(ctx context.Context) error {
		left, err := c.pods(ctx, "worker")
		for _, p := range left {
			if p.Spec.NodeName == node {
				err = fmt.Errorf("%s is still on %s", p.Name, node)
			}
		}
		return err
	})
	if err := c.cordon(node, false); err != nil {
		c.t.Fatal(err)
	}
	c.completed(8*time.Minute, "drained")
	ways := c.compare("drained", 16, c.evaluations("drained"))
	if ways[handedBack] == 0 || ways[succeeded] != 16 || len(ways) != 2 {
		c.t.Errorf("the attempts ended as %v; want some handed back, none lost", ways)
	}
	c.settled(2*time.Minute, "coordinator", 3, c.tag)
	c.settled(2*time.Minute, "worker", 2, c.tag)
}

// testUpgrade rolls the whole release, including NATS and etcd, to another version and
// back while a study runs. The API's token stays the same.
func (c *cluster) testUpgrade() {
	token, err := c.token(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	c.create(studyFile("upgraded", "default", 60, 4, 6))
	c.ended(2*time.Minute, "upgraded", 1)
	rolled := func(tag string) {
		for component, count := range map[string]int{"etcd": 1, "nats": 1, "coordinator": 3, "worker": 2} {
			c.settled(4*time.Minute, component, count, tag)
		}
	}
	began := time.Now()
	c.chart("upgrade", c.installValues(2, c.next, ""))
	rolled(c.next)
	c.t.Logf("upgraded after %.1fs", time.Since(began).Seconds())
	if after, err := c.token(c.t.Context()); err != nil || after != token {
		c.t.Errorf("the upgrade has changed the token (%v)", err)
	}
	began = time.Now()
	c.helm("rollback", release)
	rolled(c.tag)
	c.t.Logf("rolled back after %.1fs", time.Since(began).Seconds())
	if s, err := c.study(c.t.Context(), "upgraded"); err != nil || s.GetState() != fantasiav1.StudyState_STUDY_STATE_RUNNING {
		c.t.Errorf("the study is %v (%v), want it to outlast both changes", s.GetState(), err)
	}
	c.completed(8*time.Minute, "upgraded")
	c.compare("upgraded", 60, c.evaluations("upgraded"))
}

// testScale changes the pool's size by the chart, while a study runs.
func (c *cluster) testScale() {
	c.create(studyFile("scaled", "default", 24, 8, 4))
	for _, n := range []int{4, 1, 2} {
		c.chart("upgrade", c.installValues(n, c.tag, ""))
		c.settled(2*time.Minute, "worker", n, c.tag)
		c.await(time.Minute, func(ctx context.Context) error {
			workers, err := c.workers(ctx, "default")
			if err == nil && len(workers) != n {
				err = fmt.Errorf("the leader knows %d workers, want %d", len(workers), n)
			}
			return err
		})
	}
	c.completed(8*time.Minute, "scaled")
	if ways := c.compare("scaled", 24, c.evaluations("scaled")); ways[lost] > 0 {
		c.t.Errorf("the attempts ended as %v, want none lost: a pool that shrinks hands its trials back", ways)
	}
}

// testAutoscale lets the leader scale the pool within its limits: up for a large enough
// study, and down again after it.
func (c *cluster) testAutoscale() {
	c.chart("upgrade",
		c.installValues(2, c.tag, "    autoscaling: {method: leader, minReplicas: 1, maxReplicas: 3, stabilizationSeconds: 5}\n"))
	c.settled(3*time.Minute, "worker", 1, c.tag)
	c.create(studyFile("autoscaled", "default", 24, 6, 6))
	c.settled(2*time.Minute, "worker", 3, c.tag)
	c.completed(8*time.Minute, "autoscaled")
	if ways := c.compare("autoscaled", 24, c.evaluations("autoscaled")); ways[lost] > 0 {
		c.t.Errorf("the attempts ended as %v, want none lost", ways)
	}
	c.settled(3*time.Minute, "worker", 1, c.tag)
}
