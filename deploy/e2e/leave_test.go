//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/study"
)

// leaveRounds is how often the teams come and leave, unless FANTASIA_E2E_ROUNDS says otherwise.
const leaveRounds = 3

// TestTeamsLeave deletes the namespaces of teams, with studies in every state. They are gone within
// a minute, also if the leader is killed meanwhile, their studies end, and the release can be
// upgraded and uninstalled while a namespace terminates. Teams that come later are served without
// an upgrade.
func TestTeamsLeave(t *testing.T) {
	inTurn(t)
	home := newCluster(t)
	teams := []*team{comes(home, "a"), comes(home, "b")}
	values := home.leaveValues(teams[0].namespace, teams[1].namespace, home.namespace+"-later")
	home.chart("install", values)
	home.upgradeDefinition()
	home.settled(2*time.Minute, "coordinator", 2, home.tag)
	rounds, err := strconv.Atoi(env("FANTASIA_E2E_ROUNDS", strconv.Itoa(leaveRounds)))
	if err != nil {
		t.Fatal(err)
	}
	var longest time.Duration
	for round := 1; round <= rounds; round++ {
		if round > 1 {
			teams = []*team{comes(home, "a"), comes(home, "b")}
			teams[0].permit()
		}
		for _, g := range teams {
			g.everyState(round == 1 || g == teams[0])
		}
		took := home.leaves(round%2 == 0, teams...)
		longest = max(longest, took)
		t.Logf("round %d: two namespaces were gone %.1fs after they were deleted; killed the leader: %v", round, took.Seconds(), round%2 == 0)
	}
	home.timed("%d rounds, the longest took %.1fs", rounds, longest.Seconds())

	stuck := comes(home, "a")
	stuck.everyState(false)
	free := stuck.hang()
	home.chart("upgrade", values)
	later := comes(home, "later")
	later.apply("short", 2, later.command()...)
	later.awaitStatus(time.Minute, "short", func(s *kube.Status) bool { return s.State == study.Completed })
	home.timed("a release was upgraded while a namespace terminates, and serves one that came later")

	later.waitsForRights(func() { home.chart("upgrade", values) })
	home.helm("uninstall", release, "--wait", "--timeout", "2m")
	if err := later.studies.Delete(t.Context(), "short", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := later.read(t.Context(), "short"); !apierrors.IsNotFound(err) {
		t.Errorf("after the uninstall, the deleted study is there: %v", err)
	}
	free()
	later.drop()
	for _, g := range []*team{stuck, later} {
		home.await(time.Minute, g.gone)
	}
}

// leaveValues are the values of a release for the studies of these namespaces, which may bring Jobs.
// The pool empty has no worker.
func (c *cluster) leaveValues(namespaces ...string) string {
	return fmt.Sprintf(`
image: {tag: %[1]q}
coordinator: {replicas: 2, resources: {requests: {cpu: 20m, memory: 32Mi}}}
nats: {bundled: {persistence: {enabled: false}}}
etcd: {bundled: {persistence: {enabled: false}}}
poolDefaults: {resources: {requests: {cpu: 20m, memory: 32Mi}}}
pools:
  default: {image: "%[2]sdigits:%[1]s", allowStudyCommands: true, slots: 3}
  empty: {image: "%[2]sdigits:%[1]s", allowStudyCommands: true, replicas: 0}
  jobs: {slots: 6, kubejob: {allowStudyJobs: true}}
studies:
  namespaces: [%[3]s]
  pools: {"*": [default, empty, jobs]}
  jobs: {%[4]s: {}}
`, c.tag, repository, strings.Join(namespaces, ", "), strings.Join(namespaces, ": {}, "))
}

// comes makes the namespace of a team of the release.
func comes(home *cluster, name string) *team {
	home.t.Helper()
	inner := *home
	g := &team{cluster: &inner, home: home}
	g.namespace = home.namespace + "-" + name
	if _, err := g.kube.CoreV1().Namespaces().Create(g.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: g.namespace, Labels: onlyRestricted(),
	}}, metav1.CreateOptions{}); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(g.drop)
	client, err := dynamic.NewForConfig(g.config)
	if err != nil {
		g.t.Fatal(err)
	}
	g.studies = client.Resource(kube.Studies()).Namespace(g.namespace)
	return g
}

// drop deletes the namespace, if it is there.
func (g *team) drop() {
	if err := g.kube.CoreV1().Namespaces().Delete(context.Background(), g.namespace, metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		g.t.Error(err)
	}
}

// permit runs the command of docs/operate/studies-on-kubernetes.md that lets a pool create the Jobs of a
// namespace which came after the last upgrade.
func (g *team) permit() {
	g.t.Helper()
	if out, err := exec.CommandContext(g.t.Context(), "kubectl", "--namespace", g.namespace, "create", "rolebinding",
		"fantasia-jobs", "--clusterrole="+g.home.namespace+"-fantasia-study-jobs",
		"--serviceaccount="+g.home.namespace+":fantasia-worker-jobs").CombinedOutput(); err != nil {
		g.t.Fatalf("%v\n%s", err, out)
	}
}

// ofJobs are changes of teamStudy for the namespace of a team that has nothing of its own.
var ofJobs = []string{"            serviceAccountName: training\n", "",
	"                env: [{name: DATA_KEY, valueFrom: {secretKeyRef: {name: data, key: key}}}]\n", ""}

// command are changes of teamStudy to a command of the pool default.
func (g *team) command(change ...string) []string {
	_, job, _ := strings.Cut(fmt.Sprintf(teamStudy, "", 0, repository, g.tag), "    job:")
	return append(change, "    job:"+job, `    command: [digits, "${args}"]`+"\n", "pool: jobs", "pool: default",
		"{name: x, type: float, min: -1, max: 1}",
		"{name: learning_rate, type: float, min: 1e-3, max: 0.2}, {name: epochs, type: fixed, value: 3}")
}

// everyState starts studies and waits until each is in another state: ended, running by commands and by
// Jobs, waiting for a worker, for a slot and, if it is mended, refused.
func (g *team) everyState(jobs bool) {
	g.t.Helper()
	g.apply("ended", 1, g.command()...)
	g.awaitStatus(time.Minute, "ended", func(s *kube.Status) bool { return s.State == study.Completed })
	g.apply("refused", 1, g.command("name: sobol", "name: magic")...)
	g.apply("waiting", 100_000, g.command("pool: jobs", "pool: empty")...)
	for _, name := range []string{"running", "queued"} {
		g.apply(name, 100_000, g.command()...)
	}
	running := func(s *kube.Status) bool { return s.Counts != nil && s.Counts.Running > 0 }
	g.awaitStatus(time.Minute, "running", running)
	if jobs {
		g.apply("jobs", 100, append([]string{"--steps=6", "--steps=600"}, ofJobs...)...)
		g.awaitStatus(time.Minute, "jobs", running)
	}
	g.awaitStatus(time.Minute, "refused", func(s *kube.Status) bool { return s.State == kube.StateRejected })
}

// leaves deletes the namespaces of teams, and the leader if killed is set, and waits until they are gone
// and none of their studies runs. It returns how long the namespaces took.
func (c *cluster) leaves(killed bool, teams ...*team) time.Duration {
	c.t.Helper()
	leader := ""
	if killed {
		leader = c.leader("")
	}
	began := time.Now()
	for i, g := range teams {
		g.drop()
		if killed && i == 0 {
			c.delete(leader, true)
		}
	}
	for _, g := range teams {
		c.await(time.Until(began.Add(time.Minute)), g.gone)
	}
	took := time.Since(began)
	c.await(30*time.Second, func(ctx context.Context) error {
		list, err := c.api().ListStudies(ctx, connect.NewRequest(&fantasiav1.ListStudiesRequest{PageSize: 100}))
		if err != nil {
			return err
		}
		for _, s := range list.Msg.GetStudies() {
			for _, g := range teams {
				if strings.HasPrefix(s.GetName(), "studies/"+g.namespace+".") && s.GetState() == fantasiav1.StudyState_STUDY_STATE_RUNNING {
					return fmt.Errorf("%s runs, although its namespace is gone", s.GetName())
				}
			}
		}
		return nil
	})
	return took
}

// hang deletes the namespace, which something of the team holds until free is called.
func (g *team) hang() (free func()) {
	g.t.Helper()
	finalized := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "finalized", Finalizers: []string{"example.com/finalized"}}}
	maps := g.kube.CoreV1().ConfigMaps(g.namespace)
	if _, err := maps.Create(g.t.Context(), finalized, metav1.CreateOptions{}); err != nil {
		g.t.Fatal(err)
	}
	free = func() {
		_, err := maps.Patch(context.Background(), "finalized", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			g.t.Error(err)
		}
	}
	g.t.Cleanup(free)
	g.drop()
	g.await(time.Minute, func(ctx context.Context) error { // the studies are gone: only the team's own is left
		bindings, err := g.kube.RbacV1().RoleBindings(g.namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(bindings.Items) > 0 {
			err = errors.New("the rights are not gone yet")
		}
		if left, gone := g.studies.List(ctx, metav1.ListOptions{}); err == nil && (gone != nil || len(left.Items) > 0) {
			err = fmt.Errorf("studies are left: %w", errors.Join(gone, fmt.Errorf("%d", len(left.Items))))
		}
		return err
	})
	return free
}

// waitsForRights brings a Job from a namespace in which no worker may create it. The study says so,
// and goes on when grant was called.
func (g *team) waitsForRights(grant func()) {
	g.t.Helper()
	g.apply("unpermitted", 1, ofJobs...)
	g.awaitStatus(time.Minute, "unpermitted", func(s *kube.Status) bool {
		for _, c := range s.Conditions {
			if c.Type == kube.ConditionProgressing && c.Reason == kube.ReasonTrialsWait {
				return strings.Contains(c.Message, "cannot be watched in namespace "+g.namespace)
			}
		}
		return false
	})
	grant()
	g.awaitStatus(2*time.Minute, "unpermitted", func(s *kube.Status) bool { return s.State == study.Completed && s.Counts.Completed == 1 })
}
