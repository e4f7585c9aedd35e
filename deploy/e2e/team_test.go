//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/study"
)

// team is a namespace of a team: with an account, a Secret and a quota of its own, but
// without a release.
type team struct {
	*cluster
	home    *cluster
	studies dynamic.ResourceInterface
}

func newTeam(home *cluster) *team {
	home.t.Helper()
	inner := *home
	g := &team{cluster: &inner, home: home}
	ns, err := g.kube.CoreV1().Namespaces().Create(g.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "fantasia-team-", Labels: onlyRestricted(),
	}}, metav1.CreateOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	g.namespace = ns.Name
	g.t.Cleanup(func() {
		if g.t.Failed() {
			g.show(context.Background())
		}
		if err := g.kube.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{}); err != nil {
			g.t.Error(err)
		}
	})
	if _, err := g.kube.CoreV1().ServiceAccounts(ns.Name).Create(g.t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "training"}}, metav1.CreateOptions{}); err != nil {
		g.t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "data"}, StringData: map[string]string{"key": "of the team"}}
	if _, err := g.kube.CoreV1().Secrets(ns.Name).Create(g.t.Context(), secret, metav1.CreateOptions{}); err != nil {
		g.t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(g.config)
	if err != nil {
		g.t.Fatal(err)
	}
	g.studies = client.Resource(kube.Studies()).Namespace(ns.Name)
	return g
}

// limit gives the namespace a quota of pods.
func (g *team) limit(pods string) {
	g.t.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)},
	}}
	if _, err := g.kube.CoreV1().ResourceQuotas(g.namespace).Create(g.t.Context(), quota, metav1.CreateOptions{}); err != nil {
		g.t.Fatal(err)
	}
}

const teamStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: error, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}]
  algorithm: {name: sobol, seed: 1}
  budget: {maxTrials: %d}
  parallelism: 3
  pool: jobs
  trial:
    grace: 5s
    retries: {lost: 0}
    job:
      container: actor
      metadata: {labels: {cost-centre: vision}}
      spec:
        template:
          spec:
            serviceAccountName: training
            securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
            containers:
              - name: actor
                image: %se2e:%s
                command: [/usr/local/bin/actor]
                args: ["--steps=6", "--pause=500ms"]
                env: [{name: DATA_KEY, valueFrom: {secretKeyRef: {name: data, key: key}}}]
                resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
                securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true}
`

// apply applies a study with changes of its text, in pairs of old and new.
func (g *team) apply(name string, trials int, change ...string) {
	g.t.Helper()
	text := strings.NewReplacer(change...).Replace(fmt.Sprintf(teamStudy, name, trials, repository, g.tag))
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		g.t.Fatal(err)
	}
	g.await(time.Minute, func(ctx context.Context) error { // the definition may be a moment old
		_, err := g.studies.Apply(ctx, name, u, metav1.ApplyOptions{FieldManager: "kubectl"})
		return err
	})
}

// read returns a study's resource.
func (g *team) read(ctx context.Context, name string) (*kube.Resource, error) {
	u, err := g.studies.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return kube.Read(u)
}

// awaitStatus waits until a study's resource is as wanted.
func (g *team) awaitStatus(within time.Duration, name string, wanted func(s *kube.Status) bool) *kube.Resource {
	g.t.Helper()
	var last *kube.Resource
	g.await(within, func(ctx context.Context) (err error) {
		if last, err = g.read(ctx, name); err == nil && !wanted(&last.Status) {
			err = fmt.Errorf("study %s has the status %+v", name, last.Status)
		}
		return err
	})
	return last
}

// jobsOf returns the Jobs of a study.
func (g *team) jobsOf(ctx context.Context, name string) ([]batchv1.Job, error) {
	list, err := g.kube.BatchV1().Jobs(g.namespace).List(ctx,
		metav1.ListOptions{LabelSelector: "fantasia.dev/study=" + g.namespace + "." + name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// erase deletes a study and waits until it and its Jobs are gone.
func (g *team) erase(name string) {
	g.t.Helper()
	if err := g.studies.Delete(g.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		g.t.Fatal(err)
	}
	g.await(time.Minute, func(ctx context.Context) error {
		jobs, err := g.jobsOf(ctx, name)
		if err == nil && len(jobs) > 0 {
			err = fmt.Errorf("%d Jobs of the deleted study are left", len(jobs))
		}
		if _, gone := g.read(ctx, name); err == nil && gone == nil {
			err = errors.New("the deleted study is left")
		}
		return err
	})
}

// denied waits until a study is refused for a reason.
func (g *team) denied(name, says string) {
	g.t.Helper()
	g.awaitStatus(time.Minute, name, func(s *kube.Status) bool {
		for _, c := range s.Conditions {
			if c.Type == kube.ConditionAccepted && c.Status == metav1.ConditionFalse && c.Reason == kube.ReasonDenied {
				return strings.Contains(c.Message, says)
			}
		}
		return false
	})
}

// TestJobsOfATeam runs studies that bring Jobs in the namespace of a team, by a shared
// pool of a release in another namespace, with the rights that the chart grants.
func TestJobsOfATeam(t *testing.T) {
	inTurn(t)
	home := newCluster(t)
	g := newTeam(home)
	home.chart("install", fmt.Sprintf(`
image: {tag: %[1]q}
coordinator:
  replicas: 1
  resources: {requests: {cpu: 50m, memory: 64Mi}}%[3]s
nats: {bundled: {persistence: {enabled: false}}}
etcd: {bundled: {persistence: {enabled: false}}}
poolDefaults: {resources: {requests: {cpu: 50m, memory: 64Mi}}}
pools:
  jobs: {slots: 3, kubejob: {allowStudyJobs: true, sidecar: true, startTimeout: 2m}}
studies:
  namespaces: [%[2]s]
  pools: {"*": [jobs]}
  jobs: {%[2]s: {podSecurity: restricted, serviceAccounts: [training]}}
`, home.tag, g.namespace, g.acceptTokens()))
	home.upgradeDefinition()

	g.apply("account", 1, "serviceAccountName: training", "serviceAccountName: default")
	g.denied("account", `spec.trial.job.spec.template.spec.serviceAccountName: the Jobs of namespace `+g.namespace+
		` may not run as service account "default"; they may run as training`)
	g.apply("host", 1, "serviceAccountName: training",
		"serviceAccountName: training\n            hostNetwork: true\n            volumes: [{name: etc, hostPath: {path: /etc}}]")
	g.denied("host", `restricted volume types (volume "etc" uses restricted volume type "hostPath")`)
	g.timed("templates beyond the policy are refused")

	g.apply("runs", 9)
	g.awaitStatus(3*time.Minute, "runs", func(s *kube.Status) bool { return s.Done >= 1 && s.Counts.Running > 0 })
	home.delete("fantasia-worker-jobs-0", true) // its replacement takes the Jobs over
	g.awaitStatus(4*time.Minute, "runs", func(s *kube.Status) bool { return s.State == study.Completed && s.Done == 9 })
	g.owned("runs", 9)
	g.plugin(g.home, "runs", 9)
	g.ownToken("runs", 9)
	g.timed("nine trials ran as Jobs of the team, while the worker's pod was killed")

	g.apply("pruned", 4, "--steps=6", "--steps=20", "budget:", "earlyStopping: {name: threshold, settings: {upper: 0.25}}\n  budget:")
	g.awaitStatus(3*time.Minute, "pruned", func(s *kube.Status) bool { return s.State == study.Completed })
	g.pruned("pruned", 0.25)
	g.timed("hopeless trials were stopped, and their Jobs deleted")
	g.eventFiles()
	g.timed("values arrived from event files")

	g.apply("stopped", 100, "--steps=6", "--steps=600")
	g.awaitStatus(2*time.Minute, "stopped", func(s *kube.Status) bool { return s.Counts != nil && s.Counts.Running == 3 })
	g.erase("stopped")
	g.erase("runs")
	g.timed("Jobs are gone with their studies")

	g.waits()
	g.timed("what trials wait for was shown")
	g.limit("0")
	g.apply("starved", 1)
	g.awaitStatus(2*time.Minute, "starved", func(s *kube.Status) bool { return s.Counts != nil && s.Counts.Failed == 1 })
	trial := g.trialsOf("starved")[0]
	failure := trial.GetAttempts()[0].GetFailure()
	if failure.GetReason() != "start" || !strings.Contains(failure.GetMessage(), "exceeded quota: team") {
		t.Errorf("beyond the quota the attempt ends with %v, want the reason start and the quota's name", failure)
	}
	g.timed("beyond the quota: %s", failure.GetMessage())
	g.erase("starved")
	if jobs, err := g.kube.BatchV1().Jobs(g.home.namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(jobs.Items) > 0 {
		t.Errorf("the release's own namespace has %d Jobs (%v), want none", len(jobs.Items), err)
	}
}

// trialsOf returns the trials of a study of the team.
func (g *team) trialsOf(name string) []*fantasiav1.Trial {
	g.t.Helper()
	return g.home.trials(g.namespace + "." + name)
}

// pruned checks that the trials with values above a threshold, and no others, were
// stopped early, and that their Jobs are gone.
func (g *team) pruned(name string, upper float64) {
	g.t.Helper()
	jobs, err := g.jobsOf(g.t.Context(), name)
	if err != nil {
		g.t.Fatal(err)
	}
	left := map[string]bool{}
	for i := range jobs {
		left[jobs[i].Labels["fantasia.dev/trial"]] = true
	}
	stopped := 0
	for _, trial := range g.trialsOf(name) {
		x := trial.GetParameters().GetFields()["x"].GetNumberValue()
		pruned := trial.GetState() == fantasiav1.TrialState_TRIAL_STATE_PRUNED
		if above := x*x > upper; pruned != above || left[strconv.Itoa(int(trial.GetNumber()))] == above {
			g.t.Errorf("trial %d at x=%v is %v, and its Job is left: %v", trial.GetNumber(), x, trial.GetState(),
				left[strconv.Itoa(int(trial.GetNumber()))])
		}
		if pruned {
			stopped++
		}
	}
	if stopped == 0 {
		g.t.Error("no trial was stopped early")
	}
}

// owned checks the Jobs of a completed study: one for each trial, which belongs to the
// study and ran as the team's account with its Secret.
func (g *team) owned(name string, trials int) {
	g.t.Helper()
	for _, trial := range g.trialsOf(name) {
		x := trial.GetParameters().GetFields()["x"].GetNumberValue()
		if trial.Value == nil || trial.GetValue() != x*x || len(trial.GetAttempts()) != 1 {
			g.t.Errorf("trial %d at x=%v has the value %v after %d attempts, want x² after one", trial.GetNumber(), x, trial.GetValue(),
				len(trial.GetAttempts()))
		}
	}
	jobs, err := g.jobsOf(g.t.Context(), name)
	if err != nil || len(jobs) != trials {
		g.t.Errorf("there are %d Jobs (%v), want %d", len(jobs), err, trials)
	}
	r, err := g.read(g.t.Context(), name)
	if err != nil {
		g.t.Fatal(err)
	}
	for i := range jobs {
		j := &jobs[i]
		owner := metav1.GetControllerOfNoCopy(j)
		if refs := j.OwnerReferences; len(refs) != 1 || refs[0].Kind != "Study" || refs[0].Name != name || refs[0].UID != r.UID || owner != nil {
			g.t.Errorf("Job %s is owned by %+v, want the study", j.Name, refs)
		}
		pod := &j.Spec.Template.Spec
		if pod.ServiceAccountName != "training" || j.Labels["cost-centre"] != "vision" {
			g.t.Errorf("Job %s runs as %q with the labels %v", j.Name, pod.ServiceAccountName, j.Labels)
		}
	}
}
